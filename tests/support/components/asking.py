"""How the tests of this folder ask."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from speckit_memory.pipeline.model.columns import Hits, Plan, Query
from speckit_memory.pipeline.testing import DAY, words

NOW = 400 * DAY


def query(text: str, **changes: Any) -> Query:
    asked = Query(text, now=NOW, terms=words(text), plan=Plan(variants=(text,)))
    return replace(asked, **changes)


def scores(hits: Hits) -> dict[int, float]:
    """Id to score, in the order of the hits, rounded so that hand-worked figures compare."""
    return {int(i): round(float(s), 6) for i, s in zip(hits.ids, hits.scores, strict=True)}
