"""What keeps a segment from being used or written, in words that say what to do."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal[
    "missing", "stale", "behind", "torn", "version", "foreign", "unread", "blocked", "leftover", "failed", "written"
]

_BY_ITSELF = (
    "Answers are the same without it and come later; a running server or the next `speckit-memory index PATH` writes "
    "it by itself, `speckit-memory doctor --fix` at once."
)
_HINTS: dict[Kind, str] = {
    "missing": _BY_ITSELF,
    "stale": _BY_ITSELF,
    "behind": "It is used; what changed since is read beside it, taking longer the more that is. A running server "
    "or the next `speckit-memory index PATH` writes it anew, `speckit-memory doctor --fix` at once.",
    "torn": f"It is not used. {_BY_ITSELF} Where this comes again, look at the disk.",
    "version": _BY_ITSELF,
    "foreign": f"It is not used. {_BY_ITSELF}",
    "unread": "A running server reads it by itself, `speckit-memory doctor --fix` at once. Answers are the same.",
    "blocked": "Move what is there away: the folder is made anew. Answers are the same without it and come later.",
    "leftover": "The next writer removes them, `speckit-memory doctor --fix` at once.",
    "written": "There is nothing to do. Answers are the same until it is there, and come later.",
    "failed": "Answers are the same without it and come later. Mend what is told, then `speckit-memory doctor --fix`.",
}


class Finding(NamedTuple):
    """One thing that was found. `kind` is for programs; `detail` says what and where."""

    kind: Kind
    detail: str

    @property
    def hint(self) -> str:
        """What it means, and what to do next."""
        return _HINTS[self.kind]

    @property
    def code(self) -> str:
        """E029 for what keeps a segment from being written, else E028."""
        return "E029" if self.kind in ("failed", "blocked") else "E028"

    def __str__(self) -> str:
        return f"{self.code} {self.kind}: {self.detail}"
