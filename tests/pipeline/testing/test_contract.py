"""The contract suite finds what breaks a promise, and says what, for components of every role."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import count
from typing import Any, Literal

import numpy as np
import pytest
from pydantic import Field

from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline import (
    About,
    Candidates,
    ChannelParams,
    Filter,
    Fused,
    Hits,
    Notes,
    Params,
    Plan,
    Pool,
    Query,
    Ranking,
    Registry,
    Rescored,
    Role,
    Scale,
    SignalParams,
    Store,
    Unavailable,
)
from speckit_memory.pipeline.testing import DAY, FakeStore, Memory, Sample, ask, check_component, contract_cases


class Component:
    """A component of a test."""

    about = About()

    def __init__(self, params: Params) -> None:
        self.params = params
        self.calls = count()


class Newest(Component):
    """The memories that changed last."""

    Params = ChannelParams
    about = About(gives=Scale.UNIT)
    wanted: Filter | None = None

    def search(self, query: Query, limit: int, store: Store) -> Hits | Unavailable:
        ids = np.arange(1, 20)
        ids = ids[store.attributes.scope(self.wanted or query.wanted, query.now).admits(ids)]
        changed = store.attributes.number("updated_at", ids)
        ids, age = ids[~np.isnan(changed)], (query.now - changed[~np.isnan(changed)]) / DAY
        order = np.lexsort((ids, age))[:limit]
        return Hits(ids[order], 1 / (1 + age[order]), Scale.UNIT)


class Unfiltered(Newest):
    """Asks for what the filter leaves out, too."""

    wanted = Filter()


class OnAnotherScale(Newest):
    """Declares another scale than it gives."""

    about = About(gives=Scale.COSINE)


class Greedy(Newest):
    """Takes no limit."""

    def search(self, query: Query, limit: int, store: Store) -> Hits | Unavailable:
        return super().search(query, 50, store)


class Absent(Newest):
    """Is never there."""

    def search(self, query: Query, limit: int, store: Store) -> Hits | Unavailable:
        return Unavailable("the moon is full")


class Deaf(Component):
    """Changes no plan."""

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:
        return plan


class Forgetful(Component):
    """Drops what others have written."""

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:
        return replace(plan, reasons=("mine",))


class Stubborn(Component):
    """Never gives up."""

    def recover(self, query: Query, plan: Plan, store: Store) -> Plan:
        return replace(plan, reasons=(*plan.reasons, "again"))


class Level(Component):
    """Gives every candidate the same score."""

    about = About(gives=Scale.UNIT)

    def fuse(self, query: Query, candidates: Candidates) -> Fused:
        return Fused(("level",), np.full((len(candidates), 1), 0.5))


class ByRow(Component):
    """Scores by the row in which a candidate stands."""

    about = About(gives=Scale.UNIT)

    def fuse(self, query: Query, candidates: Candidates) -> Fused:
        return Fused(("row",), np.linspace(0.1, 0.9, len(candidates))[:, None])


class Blind(Component):
    """Tells no rows apart."""

    Params = SignalParams
    combine: Literal["add"] = "add"

    def evidence(self, query: Query, pool: Pool, store: Store) -> Any:
        return np.zeros(len(pool))


class Moody(Blind):
    """Answers otherwise each time."""

    def evidence(self, query: Query, pool: Pool, store: Store) -> Any:
        return np.full(len(pool), float(next(self.calls)))


class Narrow(Blind):
    """Answers in a type of its own."""

    def evidence(self, query: Query, pool: Pool, store: Store) -> Any:
        return np.zeros(len(pool), np.float32)


class Idle(Component):
    """Changes no pool."""

    def rerank(self, query: Query, pool: Pool, store: Store) -> Rescored:
        return Rescored(pool.score)


class Silent(Component):
    """Has nothing to say."""

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes:
        return Notes()


class Gossip(Component):
    """Speaks of memories that are not there."""

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes:
        return Notes(by_id={999: {"gossip": True}})


class Unsaid(Newest):
    """Has a parameter that nobody explains."""

    class Params(ChannelParams):
        days: float = 1.0


class Unruly(Newest):
    """Refuses its own range."""

    class Params(ChannelParams):
        days: float = Field(1.0, gt=0, description="Days.", json_schema_extra={"tunable": [0, 5]})


class NeedsModel(Newest):
    """Needs a model."""

    def search(self, query: Query, limit: int, store: Store) -> Hits | Unavailable:
        found = store.vectors.embed(query.text)
        return found if isinstance(found, Unavailable) else super().search(query, limit, store)


BROKEN = [
    (Role.CHANNEL, Unfiltered, "returned [2, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19], which Filter(folder='search'"),
    (Role.CHANNEL, OnAnotherScale, "returned the scale unit; it declares cosine"),
    (Role.CHANNEL, Greedy, "its limit is 1"),
    (Role.CHANNEL, Absent, "answered Unavailable (the moon is full) to 'rank fusion of lists'; accepted here: Hits"),
    (Role.UNDERSTANDER, Deaf, "changed the plan of no query"),
    (Role.UNDERSTANDER, Forgetful, "dropped the reasons of the steps before it"),
    (Role.RECOVERER, Stubborn, "offered 10 plans for 'rank fusion of lists'; accepted: 1 to 9"),
    (Role.FUSER, Level, "gave all candidates the same score"),
    (Role.FUSER, ByRow, "gave candidates other scores when their rows had another order"),
    (Role.SIGNAL, Blind, "gave all rows of every pool the same number"),
    (Role.SIGNAL, Moody, "gave another answer to 'rank fusion of lists' the second time"),
    (Role.SIGNAL, Narrow, "returned float32[0]; accepted: float64[0]"),
    (Role.RERANKER, Idle, "changed none of the pools"),
    (Role.ANNOTATOR, Silent, "gave the same notes for every query and ranking"),
    (Role.ANNOTATOR, Gossip, "999"),
    (Role.CHANNEL, Unsaid, "has parameters without a description: days"),
    (Role.CHANNEL, Unruly, "rejects 0 for 'days', an end of the parameter's tunable range: "),
    (Role.CHANNEL, NeedsModel, "answered Unavailable (there is no model) where the store lacks texts, vectors and"),
]


@pytest.mark.parametrize(("role", "component", "told"), BROKEN, ids=[kind.__name__ for _, kind, _ in BROKEN])
def test_what_breaks_a_promise_is_told_with_its_name(role: Role, component: type, told: str) -> None:
    with pytest.raises(AssertionError) as raised:
        check_component(role, component, "broken")

    assert str(raised.value).startswith(f"the {role} 'broken' ")
    assert told in str(raised.value)


def test_what_keeps_all_promises_passes_and_parameters_and_a_missing_part_can_be_declared() -> None:
    check_component(Role.CHANNEL, Newest)
    check_component(Role.CHANNEL, Newest, "newest", parameters={"limit": 5})
    check_component(Role.CHANNEL, NeedsModel, "needs_model", may_lack=True)


def test_what_is_no_component_is_refused_as_the_registry_refuses_it() -> None:
    with pytest.raises(SpeckitError, match="'newest' does not fit the role signal"):
        check_component(Role.SIGNAL, Newest, "newest")


def test_a_sample_of_ones_own_stands_in_for_the_one_of_the_suite() -> None:
    aged = FakeStore(*(Memory(i, numbers={"updated_at": ask().now - i * DAY}) for i in (1, 2, 3)))
    sample = Sample(aged, questions=(ask("when?"),))

    check_component(Role.CHANNEL, Newest, sample=sample)
    with pytest.raises(AssertionError, match="returned no memory with a score above 0 for any query"):
        check_component(Role.CHANNEL, Newest, sample=Sample(FakeStore(), questions=(ask("when?"),)))


def test_cases_are_named_by_component_parameters_and_promise() -> None:
    registry = Registry()
    registry.add(Role.CHANNEL, Newest, "newest")

    named = [str(case) for case in contract_cases(registry, parameters={"newest": [{}, {"limit": 7}]})]

    assert "newest-fewer_hits_are_the_first_of_more_hits" in named
    assert "newest-7-fewer_hits_are_the_first_of_more_hits" in named
    assert len(named) == len(set(named)) == 12


@pytest.mark.usefixtures("processes")
def test_the_suite_needs_no_test_framework() -> None:
    code = "import sys, speckit_memory.pipeline.testing; print({'pytest', 'hypothesis', '_pytest'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"
