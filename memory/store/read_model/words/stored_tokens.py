"""Reads stored tokens as the input of inverted indexes: texts with a blank before each token, see `numbered`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apsw
import numpy as np

from speckit_memory.memory.store.read_model.facts.columns import Columns
from speckit_memory.memory.store.read_model.words.late_entries import LateTexts
from speckit_memory.memory.store.reading import loading
from speckit_memory.pipeline.arithmetic.bags import Part
from speckit_memory.pipeline.ports import FIELDS, Ids

Text = tuple[int, str]
"""An entry id and one of its texts."""
_SHORT_FIELDS = FIELDS.index("body")
"""Number of fields before the body, in the order of `load_fields`."""


def entries(connection: apsw.Connection, part: Part, memories: Ids | None, columns: Columns) -> Iterator[Text]:
    """The text of each entry of a part, in order.

    Args:
        connection: An open transaction.
        part: Field and level; at level "chunk" the entries are the chunks of the memories.
        memories: Ids of memories, ascending; None for all.
        columns: Memories and chunks that it does not know are skipped.
    """
    return texts_of_entries(texts(connection, part, memories), known(part, memories, columns))


def texts(connection: apsw.Connection, part: Part, memories: Ids | None) -> Iterator[Text]:
    """The stored texts of these memories (None for all) or of their chunks; several texts of an entry in order."""
    field, level = part
    if field == "body":
        for chunk, memory, _, text in loading.load_chunks(connection, memories):
            yield chunk if level == "chunk" else memory, _spaced(text)
    else:
        at = FIELDS.index(field)
        for id_, *fields in loading.load_fields(connection, memories):
            yield id_, _spaced(fields[at])


def known(part: Part, memories: Ids | None, columns: Columns) -> Ids:
    """The ids of these memories (None for all) or of their chunks, in row order."""
    if part[1] == "chunk":
        return columns.chunks if memories is None else columns.chunks_of(memories)
    return columns.ids if memories is None else memories


def texts_of_entries(stored: Iterable[Text], ids: Ids) -> Iterator[Text]:
    """The text of each of these entries, "" for one without text."""
    held: dict[int, list[str]] = {id_: [] for id_ in ids.tolist()}
    for id_, text in stored:
        if id_ in held:
            held[id_].append(text)
    for id_, found in held.items():
        yield id_, "".join(found)


def late(connection: apsw.Connection, memories: Ids, columns: Columns) -> dict[Part, LateTexts]:
    """The texts of these memories and their chunks by part; each text is read and numbered once."""
    fields = {id_: rest for id_, *rest in loading.load_fields(connection, memories)}
    found: dict[Part, LateTexts] = {}
    for at, field in enumerate(FIELDS[:_SHORT_FIELDS]):
        said = tuple(_spaced(fields[id_][at]) if id_ in fields else "" for id_ in memories.tolist())
        found[field, "memory"] = LateTexts.of(memories, said)
    ids = columns.chunks_of(memories)
    chunks = LateTexts.of(ids, tuple(text for _, text in entries(connection, ("body", "chunk"), memories, columns)))
    # ids need not be ascending: the place of each parent is looked up
    place = {memory: number for number, memory in enumerate(memories.tolist())}
    # The bodies of memories are the texts of their chunks, shared and grouped by parent.
    parents = np.array([place[memory] for memory in columns.parents(ids).tolist()], np.int64)
    found["body", "chunk"] = chunks
    found["body", "memory"] = LateTexts(memories, chunks.texts, chunks.numbered, parents)
    return found


def _spaced(text: str) -> str:
    """Blank-joined tokens as a text with a leading blank; tokens may contain other white space."""
    return f" {text}" if text else ""
