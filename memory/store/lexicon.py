"""The inverted indexes of a snapshot, each built when it is first asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import apsw

from config.clock import opening
from config.exchange import FIELDS, Field, Ids, Level
from memory.store import loading
from memory.store.columns import Columns
from memory.store.committed import committed_read
from memory.store.connection import Database
from memory.store.postings import TermIndex

Analyse = Callable[[str], tuple[str, ...]]
Part = tuple[Field, Level]

_ORDERED: frozenset[Part] = frozenset({("body", "chunk"), ("title", "memory")})
"""Where words in a row are looked for. A whole body would join the last word of a passage to the first of the next."""


class Lexicon:
    """The analysed words of one state of the store. Implements `pipeline.ports.Lexicon`."""

    def __init__(self, database: Database, columns: Columns, analyse: Analyse) -> None:
        self.analyse = analyse
        self._database = database
        self._columns = columns
        self._indexes: dict[Part, TermIndex] = {}
        self._words: tuple[str, ...] | None = None
        self._loading = threading.Lock()

    def index(self, field: Field, level: Level = "memory") -> TermIndex:
        """The inverted index of a field. Only "body" exists at level "chunk": ValueError for the others."""
        part = (field, level)
        if level == "chunk" and field != "body":
            raise ValueError(f"there is no index of the field {field!r} at level 'chunk'")
        found = self._indexes.get(part)
        if found is not None:
            return found
        with opening(), self._loading:
            if part not in self._indexes:
                with committed_read(self._database) as connection:
                    entries = _entries(connection, part, None, self._columns)
                    self._indexes[part] = TermIndex(entries, ordered=part in _ORDERED)
            return self._indexes[part]

    def words(self) -> tuple[str, ...]:
        """All terms of the memories, in no order; some that only removed ones held may be there."""
        if self._words is None:
            self._words = tuple(set().union(*(self.index(field).terms() for field in FIELDS)))
        return self._words

    def advanced(self, connection: apsw.Connection, columns: Columns, outdated: Ids, put: Ids) -> Lexicon:
        """The lexicon of the state `columns`, without what outdated memories said, and with what `put` ones say.

        Indexes that nobody has asked for yet stay unbuilt.
        """
        twin = Lexicon(self._database, columns, self.analyse)
        for part, index in self._indexes.copy().items():
            changed = index.copy()
            for id_ in outdated.tolist() if part[1] == "memory" else self._columns.chunks_of(outdated).tolist():
                changed.remove(id_)
            for id_, tokens in _entries(connection, part, put, columns):
                changed.add(id_, tokens)
            twin._indexes[part] = changed
        return twin


def _entries(
    connection: apsw.Connection, part: Part, memories: Ids | None, columns: Columns
) -> Iterator[tuple[int, Sequence[str]]]:
    """Tokens of these memories (all for None) or of their chunks, in order; only of those that the columns know."""
    field, level = part
    known = columns.ids if memories is None else memories
    if level == "chunk":
        known = columns.chunks if memories is None else columns.chunks_of(memories)
    texts: dict[int, list[str]] = {id_: [] for id_ in known.tolist()}
    if field == "body":
        for chunk, memory, _, text in loading.load_chunks(connection, memories):
            id_ = chunk if level == "chunk" else memory
            if text and id_ in texts:
                texts[id_].append(text)
    else:
        for id_, title, triggers, path in loading.load_fields(connection, memories):
            text = {"title": title, "triggers": triggers, "path": path}[field]
            if text and id_ in texts:
                texts[id_].append(text)
    for id_, held in texts.items():
        # Tokens are joined by blanks; other white space may be part of one.
        yield id_, " ".join(held).split(" ") if held else ()
