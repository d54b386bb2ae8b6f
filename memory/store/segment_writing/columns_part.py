"""Writes the facts about memories, the memory of each passage, and trigger phrases, which `Columns.of_segment` and
`TriggerTable` read."""

from __future__ import annotations

import numpy as np

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.schema.facts import ATTRIBUTES, LABELS, NUMBERS
from speckit_memory.memory.store.read_model.facts.columns import UNKNOWN, table_of_places, transpose_columns
from speckit_memory.memory.store.read_model.facts.labels import NONE
from speckit_memory.memory.store.read_model.facts.reading_order import natural
from speckit_memory.memory.store.read_model.facts.trigger_index import start_of
from speckit_memory.memory.store.segment_files.container import Writer
from speckit_memory.memory.store.segment_writing.runs import Runs
from speckit_memory.memory.store.segment_writing.spill import Spill, Stretch, blocks
from speckit_memory.pipeline.ports import Ids

_MEMORIES = f"SELECT {', '.join(ATTRIBUTES)} FROM memories ORDER BY id"
_TRIGGERS = "SELECT memory_id, normalised, weight, expires_at FROM triggers ORDER BY memory_id, source, normalised"
_CHUNKS = "SELECT id, memory_id FROM chunks ORDER BY id"


def write(connection: Connection, writer: Writer, spill: Spill) -> None:
    """Write the ids, labels and numbers of memories, their reading order, and the memory of each passage."""
    ids = [np.empty(0, np.int64)]
    labels = {name: Runs(spill) for name in LABELS}
    numbers: dict[str, list[Stretch]] = {name: [] for name in (*NUMBERS, "ends")}
    names = Runs(spill)
    for block in blocks(connection, _MEMORIES):
        of_block, texts, columns = transpose_columns(block)
        ids.append(of_block)
        for runs, values in zip(labels.values(), texts, strict=True):
            for value in values:
                runs.add((value,))
        for stretches, column in zip(numbers.values(), columns, strict=True):
            stretches.append(spill.put(column))
        for folder, key in zip(texts[LABELS.index("folder")], texts[LABELS.index("key")], strict=True):
            names.add((natural(folder, key),))
    # every column has an extra last place, that of unknown ids: UNKNOWN, NONE or NaN
    memories = np.concatenate(ids)
    writer.add("memories.ids", np.append(memories, UNKNOWN))
    for name, runs in labels.items():
        # Each label value is a "row" of one token: its codes are the value numbers by memory.
        runs.write_terms(writer, f"label.{name}")
        writer.stream(f"label.{name}.codes", np.int32, (*runs.codes(), np.array([NONE])))
    for name, stretches in numbers.items():
        writer.stream(f"number.{name}", np.float64, (*map(spill.get, stretches), np.array([np.nan])))
    _write_order(writer, names, len(memories))
    _write_chunks(connection, writer, memories)


def _write_order(writer: Writer, names: Runs, count: int) -> None:
    # Sort keys are distinct, so the number of a name is the rank of its memory.
    names.number_terms()
    # rank[place]: index in `order`, counted from 1; the extra last place, that of unknown ids, has rank 0
    rank = np.concatenate([*names.codes(), np.array([-1], np.int32)]) + 1
    # order: (count + 2,) int32, with UNKNOWN before the first memory and after the last
    order = np.full(count + 2, UNKNOWN, np.int32)
    order[rank[:-1]] = np.arange(count)
    writer.add("reading.order", order)
    writer.add("reading.rank", rank.astype(np.int32))


def _write_chunks(connection: Connection, writer: Writer, memories: Ids) -> None:
    pairs = [np.array(block, np.int64) for block in blocks(connection, _CHUNKS)]
    table = np.concatenate([np.empty((0, 2), np.int64), *pairs])
    chunks, parents = table[:, 0].copy(), table[:, 1].copy()
    writer.add("chunks.ids", chunks)
    writer.add("chunks.parents", parents)
    writer.add("places", table_of_places(memories, chunks, parents))


def write_triggers(connection: Connection, writer: Writer, spill: Spill) -> None:
    """Write `trigger.memories`, `.weights` and `.ends` of each trigger, the phrases with their triggers, and the first
    words with their phrases."""
    phrases = Runs(spill)
    facts = []
    for block in blocks(connection, _TRIGGERS):
        for _, phrase, _, _ in block:
            phrases.add((phrase,))
        facts.append(np.array([(memory, weight, end) for memory, _, weight, end in block], np.float64))
    table = np.concatenate([np.empty((0, 3)), *facts])
    writer.add("trigger.memories", table[:, 0].astype(np.int64))
    writer.add("trigger.weights", table[:, 1])
    writer.add("trigger.ends", table[:, 2])
    phrases.write_terms(writer, "trigger.phrase")
    phrases.write_postings(writer, "trigger.phrase")
    starts = Runs(spill)
    # Second level: phrases by their first word; row numbers are phrase numbers.
    for phrase in phrases.terms():
        starts.add((start_of(phrase),))
    starts.write_terms(writer, "trigger.start")
    starts.write_postings(writer, "trigger.start")
