"""The inverted indexes of a snapshot, each built when it is first asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import apsw

from speckit_memory.memory.store.read_model.columns import Columns
from speckit_memory.memory.store.read_model.moment import Moment
from speckit_memory.memory.store.read_model.postings import TermIndex
from speckit_memory.memory.store.reading import loading
from speckit_memory.pipeline.arithmetic.bags import Part, Setting, WordBags
from speckit_memory.pipeline.clock import opening
from speckit_memory.pipeline.ports import FIELDS, Field, Ids, Level
from speckit_memory.pipeline.ports.immutable import own

Analyse = Callable[[str], tuple[str, ...]]

_PARTS: dict[tuple[str, str], Part] = {(field, "memory"): (field, "memory") for field in FIELDS}
_PARTS["body", "chunk"] = ("body", "chunk")
_ORDERED: frozenset[Part] = frozenset({("body", "chunk"), ("title", "memory")})
"""Where words in a row are looked for. A whole body would join the last word of a passage to the first of the next."""
MOST_BAGS = 12
"""Bags of so many settings are kept, those last asked for; a pipeline has two as a rule, and seven at most."""


class Lexicon:
    """The analysed words of one state of the store. Implements `pipeline.ports.Lexicon`."""

    __slots__ = ("_analyse", "_bags", "_columns", "_indexes", "_keeping", "_loading", "_moment", "_words")

    def __init__(
        self, moment: Moment, columns: Columns, analyse: Analyse, indexes: Mapping[Part, TermIndex] | None = None
    ) -> None:
        """Take the indexes that are built already."""
        self._analyse = analyse
        self._moment = moment
        self._columns = columns
        self._indexes = MappingProxyType({part: index.published() for part, index in (indexes or {}).items()})
        self._words: frozenset[str] | None = None
        self._loading = threading.Lock()
        self._bags: dict[Setting, WordBags] = {}
        self._keeping = threading.Lock()

    def analyse(self, text: str) -> tuple[str, ...]:
        """The tokens of a query, in order, made by the analyser that made the index."""
        return self._analyse(text)

    def index(self, field: Field, level: Level = "memory") -> TermIndex:
        """The inverted index of a field. Only "body" exists at level "chunk": ValueError for the others."""
        found = self._indexes.get((field, level))
        if found is not None:
            return found
        part = _PARTS.get((own(field), own(level)))
        if part is None:
            raise ValueError(f"there is no index of the field {field!r} at level {level!r}")
        with opening(), self._loading:
            if part in self._indexes:
                return self._indexes[part]
            with self._moment.read() as (connection, is_of_it):
                entries = _entries(connection, part, None, self._columns)
                index = TermIndex(entries, ordered=part in _ORDERED).published()
            if is_of_it:
                self._indexes = MappingProxyType({**self._indexes, part: index})
            return index

    def bags(
        self, weights: tuple[float, float, float, float], k1: float, b: float, level: Level = "memory"
    ) -> WordBags:
        """The bags of words in which the fields count by these weights; ValueError for what is none."""
        setting = Setting.of(weights, k1, b, level)
        with self._keeping:
            found = self._bags.pop(setting, None)
            if found is not None:
                self._bags[setting] = found
                return found
        indexes = {part: self.index(*part) for part in setting.parts}
        laid_out = WordBags(setting, indexes, self._columns)
        if any(self._indexes.get(part) is not index for part, index in indexes.items()):
            return laid_out  # one of the indexes is of a later state
        with self._keeping:
            kept = self._bags.setdefault(setting, laid_out)
            while len(self._bags) > MOST_BAGS:
                del self._bags[next(iter(self._bags))]
        return kept

    def words(self) -> frozenset[str]:
        """All terms of the memories; some that only removed ones held may be there."""
        if self._words is not None:
            return self._words
        words = frozenset[str]().union(*(self.index(field).terms() for field in FIELDS))
        if all((field, "memory") in self._indexes for field in FIELDS):
            self._words = words
        return words

    def advanced(
        self, moment: Moment, connection: apsw.Connection, columns: Columns, outdated: Ids, put: Ids
    ) -> Lexicon:
        """The lexicon of the state `columns`, without what outdated memories said, and with what `put` ones say.

        Indexes that nobody has asked for yet stay unbuilt.
        """
        twins = {}
        for part, index in self._indexes.items():
            changed = index.copy()
            for id_ in outdated.tolist() if part[1] == "memory" else self._columns.chunks_of(outdated).tolist():
                changed.remove(id_)
            for id_, tokens in _entries(connection, part, put, columns):
                changed.add(id_, tokens)
            twins[part] = changed
        return Lexicon(moment, columns, self._analyse, twins)


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
