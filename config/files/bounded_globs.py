"""Regular expressions of glob patterns that take bounded time on any name.

As the library writes them, `*a*a*a*b` tries every way of dividing a name among the stars, and `**/a/**/b` every way of
dividing a path: hours for a name of 255 letters. The text between two stars may always match at its first occurrence:
if the rest matches anywhere, it matches after that. An atomic group expresses this.
"""

from __future__ import annotations

import re

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
