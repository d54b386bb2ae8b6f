"""Writes the inverted indexes of a store; `PostingsIndex.of_segment` reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.read_model.words.term_index import table_of_rows
from speckit_memory.memory.store.reading import loading
from speckit_memory.memory.store.segment_files.container import Writer
from speckit_memory.memory.store.segment_writing.runs import Runs
from speckit_memory.memory.store.segment_writing.spill import Spill
from speckit_memory.pipeline.ports import Ids

_FIELDS = "SELECT memory_id, title_tokens, trigger_tokens, path_tokens FROM texts ORDER BY memory_id"
_CHUNKS = "SELECT memory_id, ordinal FROM chunks ORDER BY id"


def write_fields(connection: Connection, writer: Writer, spill: Spill) -> None:
    """Write the table of rows by memory id, and the memory-level indexes of the short fields."""
    memories = _memories(connection)
    writer.add("memories.rows", table_of_rows(memories))
    fields = {"title": Runs(spill, ordered=True), "triggers": Runs(spill), "path": Runs(spill)}
    for held in _aligned(memories, connection.execute(_FIELDS)):
        for place, runs in enumerate(fields.values()):
            runs.add(_tokens([row[place] for row in held]))
    for field, runs in fields.items():
        write_index(writer, f"{field}.memory", runs)


def write_bodies(connection: Connection, writer: Writer, spill: Spill) -> None:
    """Write the memory-level index of bodies."""
    whole = Runs(spill)
    bodies = ((memory, tokens) for _, memory, _, tokens in loading.load_chunks(connection))
    for held in _aligned(_memories(connection), bodies):
        whole.add(_tokens([text for (text,) in held]))
    write_index(writer, "body.memory", whole)


def write_passages(connection: Connection, writer: Writer, spill: Spill) -> None:
    """Write the table of rows by chunk id, and the chunk-level index."""
    writer.add("chunks.rows", table_of_rows(_ids(connection, "SELECT id FROM chunks ORDER BY id")))
    passages = Runs(spill, ordered=True)
    # the passages of a memory have consecutive ids
    for _, chunks, tokens in loading.with_tokens(connection, groupby(connection.execute(_CHUNKS), itemgetter(0))):
        for _, ordinal in chunks:
            passages.add(_tokens(tokens[ordinal : ordinal + 1]))
    write_index(writer, "body.chunk", passages)


def write_index(writer: Writer, name: str, runs: Runs) -> None:
    """Write one index from its rows."""
    runs.write_terms(writer, name)
    writer.add(f"{name}.lengths", runs.sizes.astype(np.float32))
    runs.write_postings(writer, name)
    runs.write_frequencies(writer, name)
    if runs.ordered:
        runs.write_order(writer, name)


def _memories(connection: Connection) -> Ids:
    return _ids(connection, "SELECT id FROM memories ORDER BY id")


def _ids(connection: Connection, sql: str) -> Ids:
    return np.fromiter((id_ for (id_,) in connection.execute(sql)), np.int64)


def _aligned(ids: Ids, rows: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """For each id, its rows without the id column; ids and rows are ascending."""
    # a merge join: both sides ascend, and rows of ids that are not in the list are skipped
    row = next(rows, None)
    for id_ in ids.tolist():
        held = []
        while row is not None and row[0] <= id_:
            if row[0] == id_:
                held.append(row[1:])
            row = next(rows, None)
        yield held


def _tokens(texts: Sequence[str]) -> Sequence[str]:
    # Tokens are joined by blanks; other white space may be part of a token.
    joined = " ".join(text for text in texts if text)
    return joined.split(" ") if joined else ()
