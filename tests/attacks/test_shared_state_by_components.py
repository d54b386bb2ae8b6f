"""Components that spoil all they can reach while they answer: neither their own search nor any later one notices."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frame.hostile import PLAIN, attacked, component
from frame.observed import NOW, observed, searches, through
from frame.vandal import public, swap, vandalise
from storing.project import QUESTIONS, living
from tally import Tally

from speckit_memory.engine import Memory
from speckit_memory.pipeline.model.columns import Hits, Notes, Rescored, Selected
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import FIELDS, Filter
from speckit_memory.pipeline.roles.contracts import Role

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
NAMES, PLACES = ("default", "catalogue"), (1, 3, 9, 27)
ROLES = [role for role in Role if role is not Role.FUSER]  # a fuser is handed no store
WHOLE = """\
pipeline: attacked
extends: default
candidates:
  understand:
    - complexity
    - coverage
    - spelling
  channels:
    - {use: bm25}
    - {use: vector}
    - {use: phrase}
    - {use: identifier}
    - {use: trigger}
    - {use: constitutional}
    - {use: graph}
  recover:
    - fallback
fusion:
  - {use: z_score, id: fuse, normalise: min_max}
rerank:
  - {use: min_max}
annotate: []
"""


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with living(tmp_path_factory.mktemp("project"), NOW) as opened:
        yield opened


def spoil(store: Any) -> int:
    """Asks for everything that others ask for as well, writes into it, and tries to replace what answers."""
    every = np.arange(200)
    scope = store.attributes.scope(Filter(), NOW)
    tried = vandalise(store.attributes.neighbours(every)) + swap(scope)
    for tier in ("constitutional", "critical", "normal"):
        tried += vandalise(store.attributes.of_tier(tier))
    for field, level in (*((field, "memory") for field in FIELDS), ("body", "chunk")):
        index = store.lexicon.index(field, level)
        tried += vandalise((index.ids, index.lengths, index.rows_of(every)))
        for term in store.lexicon.analyse("payment gateway importer crash rank fusion quokka cache"):
            tried += vandalise(index.postings(term)) + vandalise((index.holding(term, index.rows_of(every)),))
        tried += swap(index)
    for level in ("memory", "chunk"):
        bags = store.lexicon.bags((10.0, 5.0, 2.0, 1.0), 1.2, 0.75, level)
        terms = dict.fromkeys(store.lexicon.analyse("payment gateway importer crash"), 1.0)
        tried += vandalise((bags.ids, bags.parents, bags.neighbours, bags.scores(terms), bags.coverage(terms)))
        tried += swap(bags)
    tried += vandalise(store.folders.described()) + vandalise(store.graph.degrees({}))
    tried += vandalise(store.vectors.nearest(store.vectors.embed("payment"), 5, scope, "memory"))
    tried += vandalise(store.tokens.of_passages(every)) + vandalise(store.tokens.of_text("payment"))
    for name in public(store):
        tried += swap(getattr(store, name))
    return tried + swap(store)


def answering(role: Role, tally: Tally | None) -> type[Any]:
    """A component that changes nothing; with a tally, it spoils what it can before it says so."""

    def work(*asked: Any) -> Any:
        if tally is not None:
            tally.tried(spoil(asked[-1]))
        match role:
            case Role.UNDERSTANDER | Role.RECOVERER:
                return asked[1]
            case Role.CHANNEL:
                return Hits(np.empty(0, np.int64), np.empty(0), Scale.UNIT)
            case Role.SIGNAL:
                return np.zeros(len(asked[1]))
            case Role.RERANKER:
                return Selected(np.ones(len(asked[1]), np.bool_))
        return Notes()

    return component(role, work)


@pytest.mark.parametrize(
    ("role", "first"),
    [(role, first) for role in ROLES for first in (True, False) if not (first and role is Role.SIGNAL)],
)
@pytest.mark.usefixtures("exhaustive")
def test_a_component_that_spoils_all_it_can_reach_changes_no_search(
    tally: Tally, memory: Memory, tmp_path: Path, role: Role, first: bool
) -> None:
    before = searches(memory, NAMES, PLACES)
    # of words alone, so that a question without an answer is asked again
    whole = PLAIN if role is Role.RECOVERER else WHOLE

    def found(with_tally: Tally | None) -> list[Any]:
        pipeline = attacked(tmp_path, role, answering(role, with_tally), whole, first=first)
        behind = through(memory, pipeline)
        return [
            observed(behind.search(asked.text, now=NOW, deadline_ms=None, **asked.arguments))
            for asked in (QUESTIONS[place] for place in (1, 19, 27))
        ]

    assert found(tally) == found(None)
    assert searches(memory, NAMES, PLACES) == before


def test_a_layout_that_bm25_keeps_was_made_of_nothing_that_others_hold(
    tally: Tally, memory: Memory, tmp_path: Path
) -> None:
    """The component stands before BM25 in the first search that a pipeline ever makes, when BM25 lays out its bags."""
    fresh = through(memory, attacked(tmp_path, Role.UNDERSTANDER, answering(Role.UNDERSTANDER, None), WHOLE))
    spoilt = through(memory, attacked(tmp_path, Role.UNDERSTANDER, answering(Role.UNDERSTANDER, tally), WHOLE))
    for asked in (QUESTIONS[place] for place in (3, 1, 9, 16)):
        one, other = (
            observed(behind.search(asked.text, now=NOW, deadline_ms=None, **asked.arguments))
            for behind in (fresh, spoilt)
        )
        assert one == other


@pytest.mark.usefixtures("exhaustive")
def test_searches_of_six_threads_do_not_see_what_others_spoil_meanwhile(
    tally: Tally, memory: Memory, tmp_path: Path
) -> None:
    before = searches(memory, ("default",), (3,)), searches(memory, ("catalogue",), (9,))
    pipeline = attacked(tmp_path, Role.CHANNEL, answering(Role.CHANNEL, tally), WHOLE)
    vandals, over = through(memory, pipeline), threading.Event()

    def spoil_on() -> int:
        rounds = 0
        while not over.is_set() or not rounds:
            vandals.search("payment gateway retries", now=NOW, deadline_ms=None)
            rounds += 1
        return rounds

    def search_on() -> list[Any]:
        return [
            found
            for _ in range(50)
            if (found := (searches(memory, ("default",), (3,)), searches(memory, ("catalogue",), (9,)))) != before
        ]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(6) as pool:
            spoiling = [pool.submit(spoil_on) for _ in range(2)]
            searching = [pool.submit(search_on) for _ in range(4)]
            differing = [found for each in searching for found in each.result()]
            over.set()
            tally.survived(sum(each.result() for each in spoiling))
    finally:
        over.set()
        sys.setswitchinterval(interval)
    assert differing == []


def test_notes_that_a_component_keeps_are_not_what_a_reader_holds(tally: Tally, memory: Memory, tmp_path: Path) -> None:
    """A component that says the same objects again says what it said, whatever the first reader did to the answer."""
    said = Notes(overall={"kept": {"list": [1, {"deep": [2]}]}}, warnings=("kept",))
    behind = through(memory, attacked(tmp_path, Role.ANNOTATOR, component(Role.ANNOTATOR, lambda *_: said), WHOLE))
    text = QUESTIONS[3].text
    first = behind.search(text, now=NOW, deadline_ms=None)
    known = observed(first)
    tally.tried(vandalise(first.notes) + vandalise(first.outcome))

    assert observed(behind.search(text, now=NOW, deadline_ms=None)) == known


def test_a_reranker_that_keeps_its_scores_keeps_them(tally: Tally, memory: Memory, tmp_path: Path) -> None:
    kept: dict[int, np.ndarray] = {}

    def rescore(query: Any, pool: Any, store: Any) -> Rescored:
        return Rescored(kept.setdefault(len(pool), np.linspace(1.0, 0.5, len(pool))))

    behind = through(memory, attacked(tmp_path, Role.RERANKER, component(Role.RERANKER, rescore), WHOLE))
    first = behind.search(QUESTIONS[3].text, now=NOW, deadline_ms=None)
    known = observed(first)
    tally.tried(vandalise(first.outcome))
    assert observed(behind.search(QUESTIONS[3].text, now=NOW, deadline_ms=None)) == known
