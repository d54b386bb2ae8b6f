"""Inverted indexes and read models over segments in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO

import numpy as np
from storing.models import WordModels

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.current import ReadModel
from speckit_memory.memory.store.read_model.state.models import Models
from speckit_memory.memory.store.read_model.words.term_index import PostingsIndex, table_of_rows
from speckit_memory.memory.store.segment_files.container import Container, Writer
from speckit_memory.memory.store.segment_writing.building import build_in_memory
from speckit_memory.memory.store.segment_writing.runs import Runs
from speckit_memory.memory.store.segment_writing.spill import Spill
from speckit_memory.memory.store.segment_writing.word_part import write_index


def read_model(database: Database, models: Models | None = None) -> ReadModel:
    """A read model as the product makes it."""
    return ReadModel(database, models or WordModels(), build_in_memory)


def index_of(entries: Iterable[tuple[int, Sequence[str]]], *, ordered: bool = False) -> PostingsIndex:
    """The index of these entries, each an id and its tokens, in a segment of its own."""
    content, given = BytesIO(), list(entries)
    writer = Writer(content)
    with Spill(BytesIO()) as spill:
        runs = Runs(spill, ordered=ordered)
        for _, tokens in given:
            runs.add(tokens)
        write_index(writer, "body.chunk", runs)
    ids = np.array([id_ for id_, _ in given], np.int64)
    writer.add("chunks.ids", ids)
    writer.add("chunks.rows", table_of_rows(ids))
    writer.finish({})
    return PostingsIndex(Container(content.getbuffer().toreadonly()), "body", "chunk")
