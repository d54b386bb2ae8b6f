"""Reports constitutional memories that are missing from an answer."""

from __future__ import annotations

from pydantic import Field

from speckit_memory.pipeline.model.columns import Notes, Query
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params


class ConstitutionalGuaranteeParams(Params):
    """The guaranteed number of constitutional memories."""

    max_memories: int = Field(
        5, ge=1, le=100, description="Guaranteed constitutional memories; never more than half of the limit."
    )


class ConstitutionalGuarantee:
    """Names the constitutional memories missing from the answer, and warns if it holds fewer than guaranteed.

    It only reports. The channel `constitutional` finds these memories and the step `pin` keeps the same number of them
    on top; a warning means that the pipeline lacks one of the two. Feature A3.
    """

    about = About(features=("A3", "C6"))
    Params = ConstitutionalGuaranteeParams

    def __init__(self, params: ConstitutionalGuaranteeParams) -> None:
        self._max_memories = params.max_memories

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """Expected and missing memories, and a warning if fewer are shown than guaranteed."""
        known = store.attributes.of_tier("constitutional")
        expected = known[store.attributes.scope(query.wanted.of_the_tier, query.now).admits(known)]
        shown = set(ranking.parents[: query.limit].tolist())
        missing = [memory for memory in expected.tolist() if memory not in shown]
        report = {"constitutional": {"expected": len(expected), "missing": missing}}
        if len(expected) - len(missing) >= min(len(expected), query.whatever_is_asked(self._max_memories)):
            return Notes(overall=report)
        warning = f"{len(missing)} of {len(expected)} constitutional memories are not in this answer: ids {missing}."
        return Notes(overall=report, warnings=(warning,))
