"""The result of converting a document to Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from speckit_memory.errors import Problem, Where
from speckit_memory.memory.store.records import Chunk


@dataclass(frozen=True, slots=True)
class Readable:
    """A document as Markdown. `title` and `description` are those declared in its format, "" if none.

    `lines[i]` is the source line, counted from 1, of line i of `text`; None if both texts have the same lines. `limit`
    is the limit that was exceeded, "" if none, at the source line `limit_line`.

    In the methods, `first` is the line number in the file of the first source line.
    """

    text: str
    title: str = ""
    description: str = ""
    lines: tuple[int, ...] | None = None
    limit: str = ""
    limit_line: int = 0

    def line(self, line: int, first: int) -> int:
        """Return the line of the file for a line of `text`."""
        if not self.lines:
            return line
        return self.lines[min(max(line - first, 0), len(self.lines) - 1)] + first - 1

    def place(self, where: Where, first: int) -> Where:
        """Return the place in the file; the column is 1 if the text was converted."""
        return replace(where, line=self.line(where.line, first), column=1) if self.lines else where

    def placed(self, problems: list[Problem], first: int) -> list[Problem]:
        """Return problems of `text` at their places in the file."""
        return [replace(each, where=self.place(each.where, first)) if each.where else each for each in problems]

    def passages(self, chunks: Iterable[Chunk], first: int) -> Iterable[Chunk]:
        """Return passages of `text` with their lines in the file."""
        if not self.lines:
            return chunks
        return (
            replace(chunk, first_line=self.line(chunk.first_line, first), last_line=self.line(chunk.last_line, first))
            for chunk in chunks
        )
