"""The stored tokens as inverted indexes take them: texts with a blank before each token, see `numbered`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.read_model.columns import Columns
from speckit_memory.memory.store.read_model.numbered import NumberedTexts
from speckit_memory.memory.store.reading import loading
from speckit_memory.pipeline.arithmetic.bags import Part
from speckit_memory.pipeline.ports import Field, Ids

Text = tuple[int, str]
"""An entry and a text of it."""


class Late(NamedTuple):
    """What some memories, or their chunks, say in a field."""

    ids: Ids
    """The entries in the order of rows."""
    texts: tuple[str, ...]
    numbered: NumberedTexts
    """The same texts."""
    entry_of_text: NDArray[np.int64]
    """For each text the place in `ids` of the entry that it belongs to."""


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
        for id_, title, triggers, path in loading.load_fields(connection, memories):
            yield id_, _spaced(title if field == "title" else triggers if field == "triggers" else path)


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


def late(connection: apsw.Connection, field: Field, memories: Ids, columns: Columns) -> dict[Part, Late]:
    """What these memories say in a field, by part of it: each text is read and its terms are numbered once."""
    if field != "body":
        said = tuple(text for _, text in entries(connection, (field, "memory"), memories, columns))
        return {(field, "memory"): Late(memories, said, NumberedTexts.of(said), np.arange(len(said)))}
    chunks = columns.chunks_of(memories)
    said = tuple(text for _, text in entries(connection, ("body", "chunk"), memories, columns))
    numbered = NumberedTexts.of(said)
    # ascending ids are no matter of course: the place of each parent is looked up
    place = {memory: number for number, memory in enumerate(memories.tolist())}
    parents = np.array([place[memory] for memory in columns.parents(chunks).tolist()], np.int64)
    return {
        ("body", "memory"): Late(memories, said, numbered, parents),
        ("body", "chunk"): Late(chunks, said, numbered, np.arange(len(said))),
    }


def _spaced(text: str) -> str:
    """Tokens joined by blanks as a text; other white space may be part of one."""
    return f" {text}" if text else ""
