"""Patterns as `.gitignore` files have them, whoever wrote them: people, or other tools."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_BELOW = re.compile(r"(?<=[^\\/])(/\*\*)+\Z")


def compiled(patterns: Sequence[str]) -> GitIgnoreSpec:
    """The patterns as one specification; the last that matches decides, and its index tells which that was.

    Raises ValueError for a pattern that means nothing.
    """
    from pathspec import GitIgnoreSpec  # `--help` does without

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # what `[[` will mean to `re` one day
        try:
            # never a faster engine that happens to be installed: what is indexed must not depend on it
            return GitIgnoreSpec.from_lines([_stepwise(pattern) for pattern in patterns], backend="simple")
        except (ValueError, re.error) as error:
            raise ValueError(str(error)) from error


def _stepwise(pattern: str) -> str:
    """`docs/**` as `docs/*`: the same when folders are judged before what they hold.

    The library takes the first for the folder too, and `!docs/kept.md` after it would come too late.
    """
    return _BELOW.sub("/*", pattern.rstrip())
