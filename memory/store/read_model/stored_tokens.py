"""The stored tokens as an inverted index takes them: the id of each entry with its tokens, in the order of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import apsw

from speckit_memory.memory.store.read_model.columns import Columns
from speckit_memory.memory.store.reading import loading
from speckit_memory.pipeline.arithmetic.bags import Part
from speckit_memory.pipeline.ports import Ids

Entries = Iterator[tuple[int, Sequence[str]]]
Text = tuple[int, str]
"""An entry and tokens of it, joined by blanks."""


def entries(connection: apsw.Connection, part: Part, memories: Ids | None, columns: Columns) -> Entries:
    """Tokens of these memories (all for None) or of their chunks, in order; only of those that the columns know."""
    return arranged(texts(connection, part, memories), known(part, memories, columns))


def texts(connection: apsw.Connection, part: Part, memories: Ids | None) -> Iterator[Text]:
    """What is stored for these memories (all for None) or for their chunks; several texts of an entry in order."""
    field, level = part
    if field == "body":
        for chunk, memory, _, text in loading.load_chunks(connection, memories):
            yield chunk if level == "chunk" else memory, text
    else:
        for id_, title, triggers, path in loading.load_fields(connection, memories):
            yield id_, {"title": title, "triggers": triggers, "path": path}[field]


def known(part: Part, memories: Ids | None, columns: Columns) -> Ids:
    """These memories (all for None) or their chunks, in the order of rows."""
    if part[1] == "chunk":
        return columns.chunks if memories is None else columns.chunks_of(memories)
    return columns.ids if memories is None else memories


def arranged(stored: Iterable[Text], ids: Ids) -> Entries:
    """The tokens of each of these entries, which may have none."""
    held: dict[int, list[str]] = {id_: [] for id_ in ids.tolist()}
    for id_, text in stored:
        if text and id_ in held:
            held[id_].append(text)
    for id_, found in held.items():
        # Tokens are joined by blanks; other white space may be part of one.
        yield id_, " ".join(found).split(" ") if found else ()
