"""Is everything in order? Checks of the store, its engine, the model and the configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from config.errors import SpeckitError
from memory.indexing.indexer import ANALYSER
from memory.store import reader
from memory.store.meta import get_meta
from memory.store.vectors import MODEL

if TYPE_CHECKING:
    from engine.memory import Memory

EXAMPLE = "how does the memory fuse its channels?"
LONGEST_QUESTION = 200
"""Characters of a stored title that the check of the search asks for."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `hint` says what to do when it is not ok."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class HealthReport:
    """All checks, in the order in which they were made."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """True when every check passed."""
        return all(check.ok for check in self.checks)


def health(memory: Memory) -> HealthReport:
    """Looks at everything that a search needs. Raises nothing: what fails is a check that is not ok."""
    checks: dict[str, Callable[[Memory], Check]] = {
        "sqlite": _sqlite,
        "store": _store,
        "content": _content,
        "model": _model,
        "words": _words,
        "search": _search,
    }
    return HealthReport(tuple(_guarded(name, check, memory) for name, check in checks.items()))


def _guarded(name: str, check: Callable[[Memory], Check], memory: Memory) -> Check:
    try:
        return check(memory)
    except SpeckitError as error:
        return Check(name, False, str(error.problems[0]), error.problems[0].hint)


def _sqlite(memory: Memory) -> Check:
    engine, extension = reader.sqlite_versions(memory.database.reader())
    return Check("sqlite", True, f"SQLite {engine}, sqlite-vec {extension}")


def _store(memory: Memory) -> Check:
    wrong = memory.database.check()
    detail = "; ".join(wrong[:5]) if wrong else f"{memory.database.path} is consistent"
    return Check(
        "store", not wrong, detail, "Restore a backup, or move the file away and index again." if wrong else ""
    )


def _content(memory: Memory) -> Check:
    stats = reader.statistics(memory.database.reader())
    detail = f"{stats.memories} memories, {stats.chunks} passages, {stats.edges} causal edges"
    if stats.pending_embeddings:
        hint = "Index the files again to embed them."
        return Check("content", False, f"{detail}; {stats.pending_embeddings} wait for their vectors", hint)
    return Check("content", True, detail)


def _model(memory: Memory) -> Check:
    embedder = memory.embedder
    vector = embedder.embed_query(EXAMPLE)
    stored = get_meta(memory.database.reader(), MODEL)
    if not np.isclose(float(vector @ vector), 1.0, atol=1e-3):
        return Check("model", False, f"{embedder.model_id} gives vectors of another length than 1", "Reinstall.")
    if stored not in (None, embedder.model_id):
        detail = f"the store holds vectors of '{stored}', the configured model is '{embedder.model_id}'"
        return Check("model", False, detail, "Run `speckit-memory index PATH` to embed again.")
    return Check("model", True, f"{embedder.model_id}, {embedder.dimensions} dimensions, offline")


def _words(memory: Memory) -> Check:
    stored, current = get_meta(memory.database.reader(), ANALYSER), memory.analyser.version
    if stored not in (None, current):
        detail = f"words were cut by the analyser '{stored}', the current one is '{current}'"
        return Check("words", False, detail, "Run `speckit-memory index PATH`; it cuts them again.")
    return Check("words", True, f"analyser {current}")


def _search(memory: Memory) -> Check:
    known, _ = memory.list(limit=1)
    if not known:
        return Check("search", True, f"the pipeline '{memory.pipeline.name}' is built; there is nothing to search yet")
    # Asked in the store's own words. Whether it finds anything says nothing about health: the memory may be out of
    # the search's scope, and a title of two common words finds nothing in a small store.
    title = known[0].title[:LONGEST_QUESTION]
    question = title if any(sign.isalnum() for sign in title) else EXAMPLE
    result = memory.search(question, limit=3, deadline_ms=None)
    degraded = [part["part"] for part in result.notes["degraded"]]
    detail = f"the pipeline '{memory.pipeline.name}' answers in {result.timings_ms['total']:.1f} ms"
    if degraded:
        return Check("search", False, f"{detail}, but without {', '.join(degraded)}", "See the other checks.")
    return Check("search", True, detail)
