"""Explains answers: why a row was found, why a memory was not, and which change would bring it in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from speckit_memory.engine.answers.answer import explanation
from speckit_memory.engine.answers.results import Explanation, SearchResult
from speckit_memory.engine.explain.caller import ANY_DOOR, CallerCapabilities
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.serving.serving import ActiveConfiguration
from speckit_memory.engine.session.reopening import ReopeningStore
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.running.view import StoreView

if TYPE_CHECKING:
    from speckit_memory.engine.explain.smallest_change import SmallestChange

T = TypeVar("T")


class ExplainOperations(ABC):
    """The operations on earlier answers. Each works for the store that gave the answer."""

    _in_force: ActiveConfiguration

    @property
    @abstractmethod
    def _followed(self) -> ReopeningStore:
        """The open store."""

    def explain(self, result: SearchResult, name: int | str) -> Explanation:
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
            lambda opened, store: self._in_force.answered(result).why_not(result, _memory(opened, name), store),
        )

    def why_not_change(
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
        # imported here: it loads code for pipeline files, which searches do not need
        from speckit_memory.engine.explain.why_not_change import why_not_change

        return self._of_its_store(
            result,
            lambda opened, store: why_not_change(
                self._in_force.answered(result), opened, result, _memory(opened, name), store, door, until
            ),
        )

    def _of_its_store(self, result: SearchResult, tell: Callable[[OpenStore, Store], T]) -> T:
        """Calls `tell` with the store that gave an answer. Raises E026 if the store was replaced since."""

        def told(opened: OpenStore) -> T:
            if result.origin != opened.name:
                raise SpeckitError("E026", "the store was replaced since this search", actions=("search again",))
            return tell(opened, StoreView(opened.read_model.current()))

        return self._followed.run(told)


def _memory(opened: OpenStore, name: int | str) -> MemoryRecord:
    return reader.get_memory(opened.database.reader(), name)
