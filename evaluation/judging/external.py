"""A judge that is a command: reads one pair as JSON from standard input, writes a grade as JSON to standard output."""

from __future__ import annotations

import json
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.judging.session import MOST

SECONDS = 60.0
MOST_FAILURES = 3
"""Number of consecutive failures after which the command is not run again."""

_SHOWN = 200


@dataclass(frozen=True, slots=True)
class QueryDocumentPair:
    """A question and a document as a judge sees them."""

    query: str
    key: str
    title: str
    text: str


class JudgeFailedError(Exception):
    """The command gave no grade for one pair; the text says why."""


class ExternalJudge:
    """Runs a command once for each pair, without a shell.

    The command gets `{"query", "document": {"key", "title", "text"}, "grades": {"0": …, "3": …}}` and answers
    `{"grade": 0}` to `{"grade": 3}`, or `{"skip": true}`.
    """

    def __init__(self, command: str, seconds: float = SECONDS) -> None:
        """Raises SpeckitError (E030) for a command line that cannot be split into words."""
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise SpeckitError("E030", f"the command {command!r} cannot be read: {error}") from error
        if not self._words:
            raise SpeckitError(
                "E030", "the command of the judge is empty", actions=("give --command 'PROGRAM ARGUMENT'",)
            )
        self._seconds = seconds

    @property
    def name(self) -> str:
        """The judge recorded with its grades: the program and its arguments without folders, as one interpreter runs
        many judges."""
        return " ".join(word if word.startswith("-") else Path(word).name or word for word in self._words)

    def grade(self, pair: QueryDocumentPair) -> int | None:
        """The grade, 0 to 3, or None for skipped. Raises JudgeFailedError, or SpeckitError (E030) when it cannot be
        run."""
        document = {"key": pair.key, "title": pair.title, "text": pair.text}
        question = {"query": pair.query, "document": document, "grades": GRADES}
        try:
            done = subprocess.run(
                # A list of words and no shell: text of the pair reaches the command by standard input only.
                self._words,
                input=json.dumps(question).encode(),
                capture_output=True,
                check=False,
                timeout=self._seconds,
            )
        except subprocess.TimeoutExpired:
            raise JudgeFailedError(f"it gave no answer within {self._seconds:g} s") from None
        except OSError as error:
            message = f"the judge '{self._words[0]}' cannot be run: {(error.strerror or '').lower()}"
            raise SpeckitError(
                "E030", message, actions=("give a program that is there", "use its full path")
            ) from error
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[-_SHOWN:]
            raise JudgeFailedError(f"it ended with status {done.returncode}{': ' + said if said else ''}")
        return _read(done.stdout)


GRADES = {"0": "of no use", "1": "touches the question", "2": "helps", "3": "answers it"}


def _read(output: bytes) -> int | None:
    shown = repr(output[:_SHOWN].decode(errors="replace"))
    try:
        said = json.loads(output)
    except ValueError:
        raise JudgeFailedError(f"its output is not JSON: {shown}") from None
    if isinstance(said, dict) and said.get("skip") is True:
        return None
    grade = said.get("grade") if isinstance(said, dict) else None
    # bool is an int in Python: `true` is not grade 1.
    if isinstance(grade, bool) or not isinstance(grade, int) or not 0 <= grade <= MOST:
        raise JudgeFailedError(
            f'it must print {{"grade": 0}} to {{"grade": {MOST}}}, or {{"skip": true}}; it printed {shown}'
        )
    return grade
