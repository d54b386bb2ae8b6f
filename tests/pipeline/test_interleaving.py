from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.pipeline.comparing.interleaving import InterleavedRanking, draft_ranking, heads

rankings = st.lists(st.integers(0, 30), unique=True, max_size=15)
seeds = st.text(max_size=16)


@pytest.mark.requirement("P5.draft")
@given(rankings, rankings, seeds, st.integers(0, 4))
def test_a_draft_holds_every_row_once_and_is_the_same_each_time(
    control: list[int], variant: list[int], seed: str, kept: int
) -> None:
    draft = draft_ranking(control, variant, seed, kept=kept)

    assert sorted(draft.ids) == sorted({*control, *variant})
    assert len(draft.teams) == len(draft.ids)
    assert draft == draft_ranking(control, variant, seed, kept=kept)
    assert draft.ids[: len(control[:kept])] == tuple(control[:kept])


@pytest.mark.requirement("P5.draft")
@given(rankings, rankings, seeds)
def test_each_team_puts_its_own_rows_in_its_own_order_and_both_take_as_many_turns(
    control: list[int], variant: list[int], seed: str
) -> None:
    draft = draft_ranking(control, variant, seed)

    for team, ranking in (("control", control), ("variant", variant)):
        own = [one for one, whose in zip(draft.ids, draft.teams, strict=True) if whose == team]
        assert own == [one for one in ranking if one in own]
    turns = Counter(draft.teams)
    assert abs(turns["control"] - turns["variant"]) <= 1


@given(rankings, rankings, rankings, seeds)
def test_what_both_rank_alike_from_the_top_on_is_of_neither_team(
    top: list[int], control: list[int], variant: list[int], seed: str
) -> None:
    control, variant = ([*top, *(one for one in rest if one not in top)] for rest in (control, variant))
    draft = draft_ranking(control, variant, seed)

    assert draft.ids[: len(top)] == tuple(top)
    assert set(draft.teams[: len(top)]) <= {"both"}
    assert draft_ranking(top, top, seed).ids == tuple(top)
    assert set(draft_ranking(top, top, seed).teams) <= {"both"}


@pytest.mark.requirement("P5.draft")
def test_neither_pipeline_is_favoured_over_many_queries() -> None:
    """Two answers with nothing in common: a reader who takes the first row takes each team's as often."""
    drafts = [draft_ranking([1, 2, 3], [4, 5, 6], f"{number:016x}") for number in range(4_000)]

    first = Counter(draft.teams[0] for draft in drafts)
    second_round = Counter(draft.teams[2] for draft in drafts)
    assert abs(first["variant"] - 2_000) < 130  # 4 standard deviations
    assert abs(second_round["variant"] - 2_000) < 130
    assert {draft.ids[0] for draft in drafts} == {1, 4}
    assert abs(sum(heads(f"{number}", 1) == heads(f"{number}", 2) for number in range(4_000)) - 2_000) < 130


def test_a_longer_answer_earns_nothing_by_its_length() -> None:
    draft = draft_ranking([1, 2], [3, 4, 5, 6], "q")

    assert draft.ids[4:] == (5, 6)
    assert draft.teams[4:] == ("both", "both")
    assert draft_ranking([], [1, 2], "q") == InterleavedRanking((1, 2), ("both", "both"))
    assert draft_ranking([7, 1, 2], [1, 7, 2], "q", kept=1).ids == (7, 1, 2)
