"""Matches paths against regular expressions from users, with a time limit.

Catastrophic patterns cannot be recognised in advance, and a match in progress cannot be stopped within its process, so
matching runs in a child process that is killed after a timeout.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.errors.echo import abridge

MOST_PATTERNS = 20
LONGEST_PATTERN = 200
"""Maximum length in characters."""
SECONDS = 5.0
"""Time limit for all patterns and paths together."""
SCRIPT = """
import json, re, sys
request = json.load(sys.stdin)
for pattern in request["patterns"]:
    try:
        search = re.compile(pattern).search
        answer = [place for place, path in enumerate(request["paths"]) if search(path)]
    except (re.error, OverflowError, RecursionError, MemoryError) as error:
        answer = str(error) or type(error).__name__
    print(json.dumps(answer), flush=True)
"""
"""Reads the request from standard input, and writes one line per pattern once its result is known: the indices of the
matching paths, or an error message."""
COMMAND = (sys.executable, "-I", "-S", "-W", "ignore", "-c", SCRIPT)
_HINT = "Patterns are regular expressions of Python, found anywhere in a path: (^|/)scratch(/|$)."


def matching(patterns: Sequence[str], paths: Sequence[str]) -> set[str]:
    """The paths in which any of the patterns is found.

    Raises E032 for too many or too long patterns, E030 for those that are invalid or too slow, each with its position,
    and E096 if the child process fails.
    """
    _require_few(patterns)
    if not patterns:
        return set()
    answered, ended = _tried(patterns, paths)
    wrong = [_wrong(patterns, at, told) for at, told in enumerate(answered) if isinstance(told, str)]
    if len(answered) < len(patterns):
        if not ended:
            raise SpeckitError.of([*wrong, Problem("E096", "the process that tries patterns ended before its answer")])
        wrong.append(_wrong(patterns, len(answered), f"it takes more than {SECONDS:g} seconds on these paths"))
    if wrong:
        raise SpeckitError.of(wrong)
    return {paths[place] for places in answered if not isinstance(places, str) for place in places}


def _require_few(patterns: Sequence[str]) -> None:
    problems = []
    if len(patterns) > MOST_PATTERNS:
        problems.append(Problem("E032", f"there are {len(patterns)} patterns; at most {MOST_PATTERNS} are accepted"))
    problems += [
        Problem("E032", f"pattern {at} has {len(pattern):,} characters; at most {LONGEST_PATTERN} are accepted")
        for at, pattern in enumerate(patterns[:MOST_PATTERNS], start=1)
        if len(pattern) > LONGEST_PATTERN
    ]
    if problems:
        raise SpeckitError.of(problems)


def _wrong(patterns: Sequence[str], at: int, why: str) -> Problem:
    return Problem("E030", f"pattern {at + 1} of {len(patterns)}, '{abridge(patterns[at])}': {why}", _HINT)


def _tried(patterns: Sequence[str], paths: Sequence[str]) -> tuple[list[list[int] | str], bool]:
    """The results of the patterns, in order, and whether the process was killed before it had finished."""
    asked = json.dumps({"patterns": list(patterns), "paths": list(paths)}).encode()
    ended = False
    try:
        done = subprocess.run(
            COMMAND, input=asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=SECONDS, check=False
        ).stdout
    except subprocess.TimeoutExpired as late:
        done, ended = late.stdout or b"", True
    except OSError as error:
        raise SpeckitError("E096", f"the process that tries patterns could not be started: {error}") from error
    return [json.loads(line) for line in done.splitlines(keepends=True) if line.endswith(b"\n")], ended
