"""Answers a recorded query again with the control and a variant, over one snapshot of the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from speckit_memory.config.workspace.options import RecordingOptions, VectorIndexing
from speckit_memory.config.workspace.workspace_file import ExtensionSettings
from speckit_memory.engine import components
from speckit_memory.engine.answers.request import SearchRequest
from speckit_memory.engine.recording.observations import UNKNOWN_FOLDER
from speckit_memory.engine.recording.recorder import Recorder
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.runtime.text_models import TextModels
from speckit_memory.engine.shadowing.records import run_record
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    Arm,
    Basis,
    Observation,
    QueryRecord,
    Replay,
    VariantRecord,
)
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.facts.sessions import SessionState
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.sessions.working_memory import AttendedMemory
from speckit_memory.pipeline.comparing.shadow import Shadow, ShadowRequest
from speckit_memory.pipeline.configuration.builder import assemble, check_pipeline
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.ports import Filter
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.running.journal import BeforeStep
from speckit_memory.pipeline.running.runner import Runner

ENDED = "Replay"
"""Prefix of the failure that is recorded when the replay process ended or was killed."""


@dataclass(frozen=True, slots=True)
class ReplayTask:
    """A store and the two pipelines to replay, in a form that can be pickled for another process.

    `flag` is the flag that defines the variant, "" for none.
    """

    store: Path
    root: Path
    environ: Mapping[str, str]
    extensions: ExtensionSettings
    vector_index: VectorIndexing
    arm: Arm
    control: Effective
    variant: Effective
    flag: str = ""


class Replayer:
    """An open store with the two runners. Records nothing and writes nothing to the store."""

    def __init__(self, task: ReplayTask) -> None:
        """Opens the store. Raises SpeckitError."""
        self._task = task
        registry = components.registry_of(task.extensions)
        self._control, self._variant = (
            Runner(assemble(check_pipeline(one, registry))) for one in (task.control, task.variant)
        )
        database = Database.open(task.store, create=False)
        unrecorded = Recorder(task.store, RecordingOptions(record="off"))
        models = TextModels(task.environ)
        self._opened = OpenStore(database, task.root, models, unrecorded, task.vector_index)

    @property
    def pipelines(self) -> tuple[Pipeline, Pipeline]:
        """The control and the variant."""
        return self._control.pipeline, self._variant.pipeline

    def close(self) -> None:
        """Closes the store."""
        self._opened.database.close()

    def replay(self, seen: Observation, pause: BeforeStep | None = None) -> Replay:
        """Both answers to a query that was recorded with its text.

        Raises what `pause` raises, and SpeckitError for a store that cannot be read.
        """
        asked, task = seen.query, self._task
        with self._opened.read_model.reading() as snapshot:
            # Everything but the session is that of the present snapshot.
            store = replace(snapshot, sessions=snapshot.sessions.as_of(_session_state(asked)))
            if asked.folder not in ("", UNKNOWN_FOLDER) and not store.attributes.scope(Filter(asked.folder), 0.0).size:
                nothing = AnswerRecord(task.arm.control)
                variant = VariantRecord("shadow", AnswerRecord(task.arm.variant), task.flag)
                return Replay(asked.id, task.arm, "gone", store.sequence, nothing, variant)
            control, run = self._runs(asked, store, pause)
            unchanged = self._unchanged(asked.state)
        answer = run_record(control)
        variant = VariantRecord("shadow", run_record(run), task.flag, run.parted_at, run.spent_ns / 1e6)
        return Replay(asked.id, task.arm, _basis(seen, answer, unchanged=unchanged), store.sequence, answer, variant)

    def _unchanged(self, state: int) -> bool:
        """Whether no memory and no edge came, went or changed since this state. Usage counts do not matter."""
        with self._opened.database.snapshot_read() as connection:
            log = changes.content_since(connection, state)
        return log is not None and all(kind == "attributes" for _, kind in log[1])

    def _runs(self, asked: QueryRecord, store: Snapshot, pause: BeforeStep | None) -> Any:
        question = SearchRequest(**_arguments(asked))
        # `now` of the recorded question: decay and expiry are computed as of then.
        query = question.query(store, (asked.read_point or {}).get("now", asked.at), None)
        answered: list[ShadowRequest] = []
        try:
            Shadow(self._control, answered.append).run(query, store)
        except Exception:  # the control's failure is recorded with its run
            if not answered:
                raise
        return answered[0].control, answered[0].run(self._variant, store, pause)


def _arguments(asked: QueryRecord) -> dict[str, Any]:
    kept = (asked.question or {}).items()
    question = {name: tuple(value) if isinstance(value, list) else value for name, value in kept}
    return {"text": "", **question, "session": asked.session}


def _session_state(asked: QueryRecord) -> SessionState:
    """What the session had attended to and been sent at the time of the query."""
    found = (asked.read_point or {}).get("session") or {"attended": (), "sent": ()}
    return SessionState(
        tuple(AttendedMemory(*one) for one in found["attended"]),
        tuple((memory, text) for memory, text in found["sent"]),
    )


def _basis(seen: Observation, answer: AnswerRecord, *, unchanged: bool) -> Basis:
    """Returns "served" if the control reproduced the served answer exactly over unchanged memories, else "present"."""
    served, count = seen.control, len(seen.control.memories)
    # Only the recorded length is compared: fewer rows may have been served than are ranked.
    now = answer.pipeline, answer.memories[:count], answer.scores[:count]
    return "served" if unchanged and now == (served.pipeline, served.memories, served.scores) else "present"
