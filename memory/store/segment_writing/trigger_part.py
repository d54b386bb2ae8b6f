"""Writes the trigger phrases of all memories; `TriggerTable` reads them."""

from __future__ import annotations

import apsw
import numpy as np

from speckit_memory.memory.store.read_model.facts.trigger_index import start_of
from speckit_memory.memory.store.segment_files.blocks import blocks
from speckit_memory.memory.store.segment_files.container import Writer
from speckit_memory.memory.store.segment_writing.runs import Runs
from speckit_memory.memory.store.segment_writing.spill import Spill

_TRIGGERS = "SELECT memory_id, normalised, weight, expires_at FROM triggers ORDER BY memory_id, source, normalised"


def write(connection: apsw.Connection, writer: Writer, spill: Spill) -> None:
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
