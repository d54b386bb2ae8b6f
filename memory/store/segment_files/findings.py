"""Problems that prevent the use or writing of a segment, with hints."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal[
    "missing", "stale", "behind", "torn", "version", "foreign", "unread", "blocked", "leftover", "failed", "written"
]

_BY_ITSELF = (
    "Answers are the same without it, only slower; a running server or the next `speckit-memory index PATH` writes "
    "it automatically, `speckit-memory doctor --fix` at once."
)
_HINTS: dict[Kind, str] = {
    "missing": _BY_ITSELF,
    "stale": _BY_ITSELF,
    "behind": "It is used; later changes are read from the store, which takes longer the more there are. A running "
    "server or the next `speckit-memory index PATH` rewrites it, `speckit-memory doctor --fix` at once.",
    "torn": f"It is not used. {_BY_ITSELF} If this happens again, check the disk.",
    "version": _BY_ITSELF,
    "foreign": f"It is not used. {_BY_ITSELF}",
    "unread": "A running server checks it automatically, `speckit-memory doctor --fix` at once. Answers are the same.",
    "blocked": "Move it away; the folder is then created. Answers are the same without it, only slower.",
    "leftover": "The next writer removes them, `speckit-memory doctor --fix` at once.",
    "written": "Nothing needs to be done. Until it is complete, answers are the same, only slower.",
    "failed": "Answers are the same without it, only slower. Fix the cause, then run `speckit-memory doctor --fix`.",
}


class Finding(NamedTuple):
    """One problem. `kind` is for programs; `detail` describes the problem and its place."""

    kind: Kind
    detail: str

    @property
    def hint(self) -> str:
        """What the problem means and what to do next."""
        return _HINTS[self.kind]

    @property
    def code(self) -> str:
        """E029 for problems that prevent writing a segment, else E028."""
        return "E029" if self.kind in ("failed", "blocked") else "E028"

    def __str__(self) -> str:
        return f"{self.code} {self.kind}: {self.detail}"


class GivenUpError(Exception):
    """The writing of a segment was abandoned: the process ends, or the store is closed."""
