"""What a reader of a format makes of a document."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from speckit_memory.errors import Problem, Where
from speckit_memory.memory.store.records import Chunk


@dataclass(frozen=True, slots=True)
class Readable:
    """A document as Markdown. `title` and `description` are what its format declares, "" for nothing.

    `lines[i]` is the line of the given text, from 1, that line i of `text` comes from; None when both are the same.
    `limit` is the limit that it has met, "" for none, at the line `limit_line` of the given text.

    In the methods, `first` is the number in the file of the given text's first line.
    """

    text: str
    title: str = ""
    description: str = ""
    lines: tuple[int, ...] | None = None
    limit: str = ""
    limit_line: int = 0

    def line(self, line: int, first: int) -> int:
        """The line of the file for one of `text`."""
        if not self.lines:
            return line
        return self.lines[min(max(line - first, 0), len(self.lines) - 1)] + first - 1

    def place(self, where: Where, first: int) -> Where:
        """The place in the file; the column in a text made of it says nothing, and is 1."""
        return replace(where, line=self.line(where.line, first), column=1) if self.lines else where

    def placed(self, problems: list[Problem], first: int) -> list[Problem]:
        """Problems of `text` at their places in the file."""
        return [replace(each, where=self.place(each.where, first)) if each.where else each for each in problems]

    def passages(self, chunks: Iterable[Chunk], first: int) -> Iterable[Chunk]:
        """Passages of `text` with their lines in the file."""
        if not self.lines:
            return chunks
        return (
            replace(chunk, first_line=self.line(chunk.first_line, first), last_line=self.line(chunk.last_line, first))
            for chunk in chunks
        )
