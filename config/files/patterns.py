"""Patterns in the syntax of `.gitignore` files, written by people or other tools."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec
    from pathspec.pattern import Pattern


# Regular expressions of glob patterns that take bounded time on any name.
#
# As the library writes them, `*a*a*a*b` tries every way of dividing a name among the stars, and `**/a/**/b` every way
# of dividing a path: hours for a name of 255 letters. The text between two stars may always match at its first
# occurrence: if the rest matches anywhere, it matches after that. An atomic group expresses this.

_STAR = "[^/]*"
_NO_CLASS = ("[^/]", "[^/]+")
_FIRST_FOLDERS = "^(?:.+/)?"
_FOLDERS = "(?:/.+)?"
_END = re.compile(r"(\(\?:\(\?P<ps_d>/\)\|\$\)|\(\?P<ps_d>/\)|/)?\Z")
_SIGN = re.compile(r"\[\^/\][*+]?|\[\^?\]?[^\]]*\]|\\.|.", re.DOTALL)
"""One unit of the expression of a name: the translation of a `?`, a `*`, a class, or a letter."""


def bounded(expression: str) -> str:
    """An equivalent expression whose time is proportional to the length of name and pattern.

    Names may contain line breaks, and a character class never matches a slash.
    """
    found = _END.search(expression)
    assert found is not None  # it may be empty
    body, end = expression[: found.start()], found[0].replace("$", r"\Z")
    first, *further = body.split(_FOLDERS)
    anywhere = first.startswith(_FIRST_FOLDERS)
    paths = [_path(part) for part in (first.removeprefix(_FIRST_FOLDERS), *further)]
    start, begins = ("^", ["(?:.+?/)??"]) if anywhere else ("", [""])
    begins += ["(?:/.+?)??"] * len(further)
    # Atomic groups with lazy prefixes: each part takes its first match, and is never tried again.
    sooner = "".join(f"(?>{begin}{path}(?=/))" for begin, path in zip(begins, paths[:-1], strict=False))
    last = _FOLDERS if further else _FIRST_FOLDERS.removeprefix("^") if anywhere else ""
    return f"(?s){start}{sooner}{last}{paths[-1]}{end}"


def _path(expression: str) -> str:
    names: list[list[str]] = [[]]
    for sign in _SIGN.findall(expression):
        if sign == "/":
            names.append([])
        else:
            names[-1].append(sign)
    return "/".join(map(_name, names))


def _name(signs: list[str]) -> str:
    """The expression of a name: stars match as little as possible, the text between two of them its first match."""
    between: list[str] = [""]
    for sign in signs:
        if sign == _STAR:
            between.append("")
        else:
            between[-1] += f"(?!/){sign}" if sign.startswith("[") and sign not in _NO_CLASS else sign
    if len(between) == 1:
        return between[0]
    # The first part is anchored to the start, the last to the end; the star before the last may take the rest.
    first, *middle, last = between
    return first + "".join(f"(?>[^/]*?{part})" for part in middle if part) + _STAR + last


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
