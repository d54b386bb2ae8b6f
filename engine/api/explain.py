"""Explains answers: why a row was found, why a memory was not, and which change would bring it in."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from speckit_memory.config.pipelines.sources import presets
from speckit_memory.config.workspace.settings import Settings
from speckit_memory.engine import components
from speckit_memory.engine.answers.answer import explanation
from speckit_memory.engine.answers.request import MAX_LIMIT, RecordedRequest, SearchRequest, parameters_of
from speckit_memory.engine.answers.results import Explanation, SearchResult
from speckit_memory.engine.answers.search_options import adjust_pipeline
from speckit_memory.engine.answers.why_not import absence, beyond_reach, sightings
from speckit_memory.engine.explain.caller import ANY_DOOR, CallerCapabilities
from speckit_memory.engine.explain.change_candidates import candidates
from speckit_memory.engine.explain.changes import QueryEdit
from speckit_memory.engine.explain.smallest_change import SmallestChange, smallest_change
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.search.plans import PlanReport
from speckit_memory.engine.search.searcher import Searcher
from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.pipeline.configuration.builder import CheckedPipeline, examine
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.loading import name_of
from speckit_memory.pipeline.configuration.variants import without
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.running.view import StoreView

CANDIDATES = ("understand", "channels", "recover")
"""The slots of stage 1, which are nested under its name."""


def with_file(change: QueryEdit, checked: CheckedPipeline, config: Settings) -> QueryEdit:
    """Adds to the removal of a step a pipeline file with the same effect, if there is one.

    `checked` is the unchanged pipeline; a file cannot extend one that was given as a value.
    """
    if change.kind != "step":
        return change
    source = name_of(checked.effective)
    slot = next(entry.step.slot for entry in checked.bound if entry.id == change.name)
    removal: dict[str, object] = {slot: {"remove": [change.name]}}
    if source not in presets():
        source = str(Path(source).absolute())
        if not Path(source).is_file():
            return change
    said = {"extends": source, **({"candidates": removal} if slot in CANDIDATES else removal)}
    plain = replace(checked.effective, changes=())
    registry = components.registry(config.environ, config.root)
    by_file, by_call = (
        examine(one, registry, config.environ_of_root) for one in (said, without(plain, change.name, forgotten=True))
    )
    # Equal hashes prove that the file and the call build the same pipeline; otherwise no file is offered.
    if by_file.hash != by_call.hash:
        return change
    inner = f"{slot}: {{remove: [{change.name}]}}"
    body = f"candidates:\n  {inner}" if slot in CANDIDATES else inner
    return replace(change, file=f"extends: {source}\n{body}\n")


def why_not_change(
    searching: Searcher,
    opened: OpenStore,
    result: SearchResult,
    memory: MemoryRecord,
    store: Store,
    door: CallerCapabilities = ANY_DOOR,
    until: float = math.inf,
) -> SmallestChange | None:
    """The smallest change that brings a memory into an answer of this pipeline; None if it is a result.

    Only reads: no usage is counted, and no session is updated.

    Args:
        searching: The pipeline that answered.
        opened: The store that answered.
        result: The answer.
        memory: The lost memory.
        store: The view of the store to search.
        door: What the caller can change.
        until: Nothing is tried after this time of `time.perf_counter`, in seconds.
    """
    asked = result.asked
    assert asked is not None  # answers of `search` always carry it
    lost = absence(result, memory.id, store)
    if lost.where == "served":
        return None
    if never := beyond_reach(result, memory, store):
        return SmallestChange(never=never)
    present = searching.wished(asked.question.adjust, asked.question.session)
    base = present.base
    assert base is not None and present.checked is not None  # pipelines of a memory were examined
    pipeline = searching.answering(result).pipeline
    # no parameter of a call changes the handover preset
    settable = replace(present.checked, bound=()) if searching.by_handovers(result) else present.checked
    within = door.parameter_is_enough and lost.where == "limit" and lost.rank <= MAX_LIMIT
    # Searching every channel deep takes time, which a raised limit does not need.
    seen = () if within or time.perf_counter() >= until else tuple(sightings(pipeline, result, memory.id, store))
    steps = tuple(step.id for step in (*pipeline.rerank, *pipeline.annotate))
    found = smallest_change(
        candidates(lost, settable, asked, result, memory, seen, door),
        partial(_asked_again, searching, opened, asked, base.effective),
        result,
        memory.id,
        store,
        steps,
        until=until,
        enough=("limit", *asked.question.adjust.named) if door.parameter_is_enough else (),
    )
    return replace(found, change=found.change and with_file(found.change, base, searching.config))


def _asked_again(
    searching: Searcher, opened: OpenStore, asked: RecordedRequest, unchanged: Effective, change: QueryEdit
) -> SearchResult | None:
    """The answer with one change, as a call with that change gets it; None if the call fails.

    Per-search options apply to a changed pipeline too.
    """
    asked, whole = change.applied(asked, unchanged)
    try:
        if whole is unchanged:
            through = searching.adjusted(asked.question.adjust, asked.question.session)
        else:
            through = searching.changed(adjust_pipeline(whole, asked.question.adjust)[0])
        return through.search(
            opened, replace(asked.question, snippet=0, content=False), now=asked.now, allowed_ms=asked.allowed_ms
        )
    except SpeckitError:
        return None


T = TypeVar("T")


@dataclass(eq=False)
class ExplainService:
    """The operations on earlier answers. Each works for the store that gave the answer."""

    session: StoreSession

    @parameters_of(SearchRequest)
    def plan(self, request: SearchRequest) -> PlanReport:
        """Describes what a search would do, without running it; see `SearchRequest` for the parameters."""
        return self.session.read(lambda opened: self.session.searcher.plan(opened, request))

    def row(self, result: SearchResult, name: int | str) -> Explanation:
        """How a result got its score, step by step. Raises E080 if the memory is not among the results."""
        row = next((row for row in result.results if name in (row.id, row.key)), None)
        if row is not None:
            found = self._of_its_store(result, lambda _, store: explanation(result.outcome, store, row.id))
            if found is not None:
                return found
        raise SpeckitError(
            "E080",
            f"'{name}' is not among the results",
            hint="Only scores of results can be explained.",
            actions=("ask why_not instead",),
        )

    def why_not(self, result: SearchResult, name: int | str) -> str:
        """Why a memory is not among the results: the step that lost it, and a change that would have kept it."""
        return self._of_its_store(
            result,
            lambda opened, store: self.session.configuration.answered(result).why_not(
                result, _memory(opened, name), store
            ),
        )

    def smallest_change(
        self, result: SearchResult, name: int | str, *, door: CallerCapabilities = ANY_DOOR, until: float = math.inf
    ) -> SmallestChange | None:
        """The smallest single change of a value, flag or step that brings a memory in; None if it is a result.

        Found by at most 60 further searches within about two seconds, and verified: the same question with the change
        gets that answer as long as the store is unchanged. Writes nothing and counts no usage. The search's per-search
        options stay in force, and dropping them is tried too.

        Args:
            result: The answer.
            name: The memory, by id or key.
            door: What the caller can change.
            until: Nothing is tried after this time of `time.perf_counter`, in seconds.
        """
        return self._of_its_store(
            result,
            lambda opened, store: why_not_change(
                self.session.configuration.answered(result), opened, result, _memory(opened, name), store, door, until
            ),
        )

    def _of_its_store(self, result: SearchResult, tell: Callable[[OpenStore, Store], T]) -> T:
        """Calls `tell` with the store that gave an answer. Raises E026 if the store was replaced since."""

        def told(opened: OpenStore) -> T:
            if result.origin != opened.name:
                raise SpeckitError("E026", "the store was replaced since this search", actions=("search again",))
            return tell(opened, StoreView(opened.read_model.current()))

        return self.session.read(told)


def _memory(opened: OpenStore, name: int | str) -> MemoryRecord:
    return reader.get_memory(opened.database.reader(), name)
