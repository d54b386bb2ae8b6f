"""The stored tokens as inverted indexes take them: texts with a blank before each token, see `numbered`."""

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
"""An entry and a text of it."""
_SHORT_FIELDS = FIELDS.index("body")
"""So many fields stand before the body, in the order in which `load_fields` reads them."""


def entries(connection: apsw.Connection, part: Part, memories: Ids | None, columns: Columns) -> Iterator[Text]:
    """What these memories (all for None) or their chunks say, each once, in order; only those that the columns know."""
    return arranged(texts(connection, part, memories), known(part, memories, columns))


def texts(connection: apsw.Connection, part: Part, memories: Ids | None) -> Iterator[Text]:
    """What is stored for these memories (all for None) or for their chunks; several texts of an entry in order."""
    field, level = part
    if field == "body":
        for chunk, memory, _, text in loading.load_chunks(connection, memories):
            yield chunk if level == "chunk" else memory, _spaced(text)
    else:
        at = FIELDS.index(field)
        for id_, *fields in loading.load_fields(connection, memories):
            yield id_, _spaced(fields[at])


def known(part: Part, memories: Ids | None, columns: Columns) -> Ids:
    """These memories (all for None) or their chunks, in the order of rows."""
    if part[1] == "chunk":
        return columns.chunks if memories is None else columns.chunks_of(memories)
    return columns.ids if memories is None else memories


def arranged(stored: Iterable[Text], ids: Ids) -> Iterator[Text]:
    """What each of these entries says, which may be nothing."""
    held: dict[int, list[str]] = {id_: [] for id_ in ids.tolist()}
    for id_, text in stored:
        if id_ in held:
            held[id_].append(text)
    for id_, found in held.items():
        yield id_, "".join(found)


def late(connection: apsw.Connection, memories: Ids, columns: Columns) -> dict[Part, LateTexts]:
    """What these memories and their chunks say, by part: each text is read, and its terms are numbered, once."""
    fields = {id_: rest for id_, *rest in loading.load_fields(connection, memories)}
    found: dict[Part, LateTexts] = {}
    for at, field in enumerate(FIELDS[:_SHORT_FIELDS]):
        said = tuple(_spaced(fields[id_][at]) if id_ in fields else "" for id_ in memories.tolist())
        found[field, "memory"] = LateTexts.of(memories, said)
    ids = columns.chunks_of(memories)
    chunks = LateTexts.of(ids, tuple(text for _, text in entries(connection, ("body", "chunk"), memories, columns)))
    # ascending ids are no matter of course: the place of each parent is looked up
    place = {memory: number for number, memory in enumerate(memories.tolist())}
    parents = np.array([place[memory] for memory in columns.parents(ids).tolist()], np.int64)
    found["body", "chunk"] = chunks
    found["body", "memory"] = LateTexts(memories, chunks.texts, chunks.numbered, parents)
    return found


def _spaced(text: str) -> str:
    """Tokens joined by blanks as a text; other white space may be part of one."""
    return f" {text}" if text else ""
