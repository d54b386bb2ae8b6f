"""The background jobs and their intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from speckit_memory.config.workspace.workspace_file import load_workspace_config
from speckit_memory.engine.upkeep import selection_learning
from speckit_memory.memory.graph import entity_links, ranking
from speckit_memory.memory.indexing import encoder_vectors, pending_vectors, summaries
from speckit_memory.memory.intake import suspicions, unfinished_saves
from speckit_memory.memory.lifecycle import archival, consolidation, old_sessions
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.tables.vectors import embedding_cache

if TYPE_CHECKING:
    from speckit_memory.engine.runtime.open_store import OpenStore
    from speckit_memory.memory.indexing.pending_vectors import EmbeddedBatch
    from speckit_memory.memory.intake.prediction_error import Nearest
    from speckit_memory.memory.models.embedders import Embedder
    from speckit_memory.pipeline.ports import Vectors

HOUR = 3600.0
WEEK = 7 * 24 * HOUR


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """A batch that does its work before it locks the store: `find` computes what `write` then stores.

    Changes made in between are found by the next batch.
    """

    find: Callable[[Database, float], Any]
    write: Callable[[Transaction, float, Any], int]


def _from_one_state(
    read: Callable[[Connection, float], Any], write: Callable[[Transaction, float, Any], int]
) -> PreparedBatch:
    """Work on one snapshot, which yields to searches between rows."""

    def find(database: Database, now: float) -> Any:
        with database.yielding_read() as connection:
            return read(connection, now)

    return PreparedBatch(find, write)


def _from_vectors(
    opened: OpenStore,
    read: Callable[[Connection, float, Nearest], Any],
    write: Callable[[Transaction, float, Any], int],
) -> PreparedBatch:
    """As `_from_one_state`, with the vectors that searches use."""

    def find(database: Database, now: float) -> Any:
        with opened.read_model.reading() as snapshot, database.yielding_read() as connection:
            return read(connection, now, snapshot.vectors.nearest_chunks)

    return PreparedBatch(find, write)


@dataclass(frozen=True, slots=True)
class Job:
    """Work that is done in batches until nothing is left, each in its own transaction.

    `waiting` counts the items due at a time in epoch seconds; `batch` processes some and returns their number.
    Processed items wait no more, so that any process can continue a killed run.
    """

    name: str
    seconds: float
    """The interval between runs."""
    what: str
    """What the count means, in words."""
    waiting: Callable[[Connection, float], int]
    batch: Callable[[Transaction, float], int] | PreparedBatch
    at_once: bool = False
    """Due whenever an item waits, regardless of the interval; after a failure the usual delay applies."""


VECTORS = "vectors"
"""The job that embeds memories saved without vectors. Runs before verdicts and contradictions, which need them."""

NAME_JOBS = (
    Job(
        "names",
        HOUR,
        "memories searched for names",
        entity_links.unscanned,
        _from_one_state(entity_links.scan_entities, entity_links.keep_names),
    ),
    Job(
        "entities",
        HOUR,
        "links between memories that share names changed",
        entity_links.waiting,
        _from_one_state(entity_links.differences, entity_links.write),
    ),
)
"""The jobs that `entities: link` adds."""


def jobs_for(opened: OpenStore) -> tuple[Job, ...]:
    """The jobs of a store and its workspace, in running order. Memories that share names are linked before the graph is
    ranked. The store's segment is maintained by `upkeep_thread`, which writes no row."""

    def days() -> float:
        """As the workspace configures them now."""
        return load_workspace_config(opened.root).absent_days

    return (
        Job("sessions", HOUR, "ended sessions deleted", old_sessions.count_old_sessions, old_sessions.forget_over),
        Job("expiry", 2 * HOUR, "expired memories archived", archival.count_expired, archival.archive_expired),
        Job("archival", 2 * HOUR, "unused memories archived", archival.count_unused, archival.archive_unused),
        _vectors(lambda: opened.embedder),
        Job(
            "verdicts",
            HOUR,
            "interrupted saves judged",
            unfinished_saves.waiting,
            _from_vectors(opened, unfinished_saves.judge_pending, unfinished_saves.write),
        ),
        Job(
            "contradictions",
            WEEK,
            "memories compared for contradictions",
            suspicions.waiting,
            _from_vectors(opened, suspicions.compare_batch, suspicions.write),
        ),
        Job(
            "consolidation", WEEK, "links adjusted for use or disuse", consolidation.waiting, consolidation.consolidate
        ),
        Job("learning", HOUR, "selections learned from", selection_learning.waiting, selection_learning.learn),
        Job(
            "summaries",
            HOUR,
            "memories summarised",
            summaries.waiting,
            _from_one_state(summaries.make_summaries, summaries.keep),
        ),
        Job(
            "absent",
            2 * HOUR,
            "memories deleted whose files were absent too long",
            lambda connection, now: archival.count_absent(connection, now, days()),
            lambda txn, now: archival.delete_absent(txn, now, days()),
        ),
        *(NAME_JOBS if opened.entities == "link" else ()),
        Job("ranks", HOUR, "memories ranked", ranking.stale, _from_one_state(ranking.compute_ranks, ranking.write)),
        *((_encoder(opened.encoder),) if opened.encoder else ()),
    )


def _vectors(embedder: Callable[[], Embedder]) -> Job:
    """Embeds waiting passages with the model of the vectors in use, never another one.

    A model named only in the store is never called over the network: see `ActiveModels`. Each group of vectors is
    cached as it arrives, so that paid results survive a failed batch.
    """
    return Job(
        VECTORS,
        HOUR,
        "waiting passages embedded",
        lambda connection, _now: pending_vectors.waiting(connection),
        PreparedBatch(partial(_completed, embedder), pending_vectors.store),
        at_once=True,
    )


def _completed(embedder: Callable[[], Embedder], database: Database, now: float) -> EmbeddedBatch | None:
    if not pending_vectors.waiting(database.reader()):
        return None  # no need to load a model
    model = embedder()
    # Raises E003 before the model is asked for anything: a paid service would be called in vain.
    pending_vectors.in_use(database.reader(), model)

    def keep(vectors: Mapping[str, Vectors]) -> None:
        with database.write() as txn:
            embedding_cache.store(txn, model.model_id, vectors, now)

    return pending_vectors.complete_batch(database, model, keep)


def _encoder(encoder: Embedder) -> Job:
    """Makes the vectors of the second-stage encoder, after all other work, as nothing depends on them."""
    return Job(
        "encoder",
        HOUR,
        "memories and passages encoded for the second stage",
        partial(encoder_vectors.waiting, encoder),
        # `find` has written the vectors itself, group by group; `write` only passes their number on.
        PreparedBatch(partial(encoder_vectors.make, encoder), lambda _txn, _now, made: made),
        at_once=True,
    )
