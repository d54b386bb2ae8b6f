"""Reports when a constitutional memory is missing from an answer."""

from __future__ import annotations

from dataclasses import replace

from pipeline.contracts import About, NoParams
from pipeline.model import Notes, Query
from pipeline.ports import Store, Unavailable
from pipeline.ranking import Ranking


class ConstitutionalGuarantee:
    """Names the constitutional memories that the asker may see and the answer does not hold.

    It only reports. Bringing them in is the work of the channel `constitutional`, keeping them on top that of
    `pin`; a warning here means that the pipeline lacks one of the two, or that a limit is too low. Feature A3.
    """

    about = About(features=("A3", "C6"), before=("session_dedup",))
    Params = NoParams

    def __init__(self, params: NoParams) -> None:
        pass

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """Expected and missing memories, and a warning when some are missing."""
        known = store.attributes.of_tier("constitutional")
        expected = known[store.attributes.scope(replace(query.wanted, folders=()), query.now).admits(known)]
        shown = set(ranking.parents[: query.limit].tolist())
        missing = [memory for memory in expected.tolist() if memory not in shown]
        report = {"constitutional": {"expected": len(expected), "missing": missing}}
        if not missing:
            return Notes(overall=report)
        warning = f"{len(missing)} of {len(expected)} constitutional memories are not in this answer: ids {missing}."
        return Notes(overall=report, warnings=(warning,))
