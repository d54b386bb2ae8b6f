"""Patterns in the syntax of `.gitignore` files, written by people or other tools."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from speckit_memory.config.files.bounded_globs import bounded

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec
    from pathspec.pattern import Pattern

_BELOW = re.compile(r"(?<=[^\\/])(/\*\*)+\s*\Z")
_SLASH = "ps_d"
"""The name of the group for the slash after a folder in the library's expressions."""


def compile_patterns(patterns: Sequence[str]) -> GitIgnoreSpec:
    """The patterns as one specification. Raises ValueError for an invalid pattern."""
    return _compiled(tuple(patterns))


@lru_cache(maxsize=64)
def _compiled(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # slow to import, and not needed for `--help`

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # about a future meaning of `[[` in `re`
        try:
            # never a faster engine that happens to be installed: it must not change which files are indexed
            made = GitIgnoreSpec.from_lines([_stepwise(pattern) for pattern in patterns], backend="simple")
            for pattern in made.patterns:
                if pattern.regex is not None:
                    # The library's expressions can take exponential time (`bounded_globs`).
                    pattern.regex = re.compile(bounded(pattern.regex.pattern))
        except (ValueError, re.error) as error:
            raise ValueError(str(error)) from error
    return made


def last_match(patterns: GitIgnoreSpec, path: str, is_folder: bool) -> int | None:
    """The index of the last pattern that matches a path, which decides; None if no pattern matches.

    Unlike the library's own answer, a match of a parent folder does not count: a walk of the tree has judged that
    folder before, and `!*/` after it must not take back every file.
    """
    every = patterns.patterns
    return next((at for at in reversed(range(len(every))) if _matches(every[at], path, is_folder)), None)


def _matches(pattern: Pattern, path: str, is_folder: bool) -> bool:
    if pattern.include is None:
        return False
    found = pattern.match_file(path + "/" * is_folder)
    if found is None:
        return False
    match: re.Match[str] = found.match
    slash = match.end(_SLASH) if _SLASH in match.re.groupindex else -1
    if slash == -1:
        return True
    return is_folder and (slash == len(path) + 1 or match[0] == "/")  # `*/` matches as a bare slash


def _stepwise(pattern: str) -> str:
    """`docs/**` as `docs/*`, which is equivalent when folders are judged before their contents.

    The library matches the first against the folder too, and `!docs/kept.md` after it would come too late.
    """
    return _BELOW.sub("/*", pattern)
