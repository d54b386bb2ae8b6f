"""The expressions of glob patterns, made so that none of them takes long, whatever name they are tried on.

As the library writes them, `*a*a*a*b` tries every way of dividing a name among the stars, and `**/a/**/b` every way of
dividing a path: hours for a name of 255 letters. What stands between two stars may as well be taken where it is found
first: if the rest fits anywhere, it fits behind that. An atomic group says so.
"""

from __future__ import annotations

import re

_STAR = "[^/]*"
_NO_CLASS = ("[^/]", "[^/]+")
_FIRST_FOLDERS = "^(?:.+/)?"
_FOLDERS = "(?:/.+)?"
_END = re.compile(r"(\(\?:\(\?P<ps_d>/\)\|\$\)|\(\?P<ps_d>/\)|/)?\Z")
_SIGN = re.compile(r"\[\^/\][*+]?|\[\^?\]?[^\]]*\]|\\.|.", re.DOTALL)
"""One sign of the expression of a name: what a `?`, a `*`, a class, or a letter became."""


def bounded(expression: str) -> str:
    """The same expression, in time that grows with the length of name and pattern and no faster.

    A name may hold line ends here, and a class of characters never takes a slash.
    """
    found = _END.search(expression)
    assert found is not None  # it may be empty
    body, end = expression[: found.start()], found[0].replace("$", r"\Z")
    first, *further = body.split(_FOLDERS)
    anywhere = first.startswith(_FIRST_FOLDERS)
    paths = [_path(part) for part in (first.removeprefix(_FIRST_FOLDERS), *further)]
    start, begins = ("^", ["(?:.+?/)??"]) if anywhere else ("", [""])
    begins += ["(?:/.+?)??"] * len(further)
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
    """A name: its stars as few as they may be, of what stands between two of them the first that is found."""
    between: list[str] = [""]
    for sign in signs:
        if sign == _STAR:
            between.append("")
        else:
            between[-1] += f"(?!/){sign}" if sign.startswith("[") and sign not in _NO_CLASS else sign
    if len(between) == 1:
        return between[0]
    first, *middle, last = between
    return first + "".join(f"(?>[^/]*?{part})" for part in middle if part) + _STAR + last
