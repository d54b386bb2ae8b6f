"""Questions: any text and any parameters are refused with a code, or answered by rows that keep every rule."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st
from tally import Tally

from speckit_memory.engine import Memory
from speckit_memory.engine.answers.query_syntax import read
from speckit_memory.errors import SpeckitError
from tests.attacks.fuzz.shared import opened, said_with_codes, with_notes
from tests.attacks.fuzz.target import Target

PRESETS = ("default", "catalogue", "quality", "rrf", "fts5", "vector")
PIECES = st.sampled_from(
    [
        "rank", "fusion", "why", "quokka", "REQ-006", "computeMPAB", "the", '"', "-", '-"', "“", " ", "\n", "(", ")",
        "\\", ".", "'", "\0", "\ud800", "検索", "の設計", "é", "e\u0301", "ß", "İ", "ﷺ", "a." * 40, "aB" * 40,
        "x" * 200, "fuson", "#1", "v1.2.3", "--dry-run", "-x", "NEAR/3", "OR", "*", "%", "{}", "👨\u200d👩", "\u202e",
        "reciprocal rank fusion", "actually", "where were we", "ThE aN",
    ]
)  # fmt: skip
TEXT = st.one_of(
    st.lists(PIECES, max_size=12).map("".join), st.lists(PIECES, max_size=12).map(" ".join), st.text(max_size=40)
)
CASES = st.fixed_dictionaries(
    {"text": TEXT},
    optional={
        "pipeline": st.sampled_from(PRESETS),
        "limit": st.one_of(st.sampled_from([1, 2, 100]), st.integers(-2, 102)),
        "folder": st.one_of(st.sampled_from(["docs", "docs/storage", "./docs/", "..", "\0"]), st.text(max_size=12)),
        "tier": st.sampled_from(["", "important", "constitutional", "deprecated", "x"]),
        "context_type": st.sampled_from(["", "decision", "general", "\ud800"]),
        "mode": st.sampled_from(["auto", "quick", "deep", "focused", "resume", "x"]),
        "session": st.one_of(st.just("s"), st.text(max_size=8)),
        "concepts": st.lists(TEXT, max_size=6),
        "anchors": st.lists(st.one_of(st.just("how"), st.text(max_size=8)), max_size=3),
        "token_usage": st.one_of(st.none(), st.floats(0, 1), st.floats(allow_nan=True)),
        "dedup": st.booleans(),
        "snippet": st.sampled_from([0, 1, 400]),
        "content": st.booleans(),
    },
)


@cache
def _memory(pipeline: str) -> Memory:
    return opened(with_notes(), pipeline)


def check(case: dict[str, Any], tally: Tally) -> None:
    """Asks twice, and looks at every row."""
    case = dict(case)
    memory = _memory(case.pop("pipeline", "default"))
    tally.tried()
    read(case["text"])
    try:
        first = memory.search(**case, deadline_ms=None, now=1.8e9)
    except SpeckitError as error:
        said_with_codes(error, "E199", "E040")
        return
    second = memory.search(**case, deadline_ms=None, now=1.8e9)
    assert [row.as_json() for row in first.results] == [row.as_json() for row in second.results]
    rows = first.results
    assert len({row.id for row in rows}) == len(rows) <= case.get("limit", 10)
    order = [(-row.score, row.id) for row in rows]
    assert order == sorted(order)
    assert not [part for part in first.notes.degraded if "Error" in part.reason], first.notes.degraded
    for row in rows:
        assert 0 < row.first_line <= row.last_line or row.first_line == 0
        steps = memory.explain.row(first, row.id).steps
        assert steps[-1].after == row.score
        for before, after in pairwise(steps):
            assert after.before == before.after
        for step in steps:
            _recombined(step)
    first.as_json()
    repr(first.as_json()).encode()


def _recombined(step: Any) -> None:
    """The score after a step is what its parts give, to the last bit."""
    parts = list(step.parts.values())
    if step.kind == "sum":
        total = 0.0
        for part in parts:
            total += part
        assert total == step.after
    elif step.kind == "multiply":
        product = step.before
        for part in parts:
            product *= part
        assert product == step.after


TARGET = Target("queries", CASES, check, ".json", "queries")
