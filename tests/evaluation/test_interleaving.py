from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from bench.implicit_feedback import LOOKS, QUERIES, READERS, simulated_log
from speckit_memory.evaluation.experiments.interleaving import Duels, Team, judge_duels
from speckit_memory.evaluation.statistics.sequential import anytime_p
from speckit_memory.memory.store.evaluation.records import UseRecord

ANSWER: dict[int, Team] = {1: "both", 2: "control", 3: "variant", 4: "variant", 5: "control"}


def use(query: str, memory: int) -> UseRecord:
    return UseRecord(query, memory, "opened", 1, 1000.0)


def judged(used: Iterable[Iterable[int]]) -> Duels:
    """The duels of one query for each collection of memories that were used."""
    queries = {f"q{number}": list(memories) for number, memories in enumerate(used)}
    uses = [use(query, memory) for query, memories in queries.items() for memory in memories]
    duels = judge_duels(dict.fromkeys(queries, ANSWER), uses, variants=1)
    assert duels is not None
    return duels


@pytest.mark.requirement("P5.teams")
def test_the_team_whose_memories_are_used_more_wins_a_query() -> None:
    duels = judged([[3], [3, 4, 2], [2], [2, 3], [1], [], [1, 5]])
    assert (duels.queries, duels.used) == (7, 6)
    assert (duels.variant_wins, duels.control_wins, duels.ties) == (2, 2, 2)
    assert duels.lead == 0


def test_a_memory_earns_once_and_what_was_not_shown_earns_nothing() -> None:
    assert judged([[3, 3, 3, 2]]).variant_wins == 0
    duels = judge_duels({"q": ANSWER}, [use("q", 99), use("other", 3)], variants=1)
    assert duels is not None
    assert (duels.used, duels.lead) == (0, 0)


def test_a_clear_lead_is_a_verdict_for_either_side() -> None:
    better, worse = judged([[3]] * 30 + [[2]] * 5), judged([[2]] * 30 + [[3]] * 5)
    assert (better.verdict, worse.verdict) == ("better", "worse")
    assert 0 < better.ci95[0] < better.lead < better.ci95[1]
    assert (worse.lead, worse.p) == pytest.approx((-better.lead, better.p))
    assert worse.queries_needed is None


def test_a_small_lead_is_undecided_and_says_how_many_queries_it_takes() -> None:
    duels = judged([[3]] * 12 + [[2]] * 8 + [[]] * 20)
    assert duels.verdict == "undecided"
    assert duels.ci95[0] < 0 < duels.ci95[1]
    assert duels.queries_needed is not None
    assert duels.queries_needed > 200
    assert duels.minimum_detectable_effect is not None
    assert duels.minimum_detectable_effect > duels.lead


def test_nothing_interleaved_has_no_outcome() -> None:
    assert judge_duels({}, [use("q", 3)], variants=1) is None


def test_the_p_of_a_lead_is_that_of_a_test_that_may_be_read_at_any_time() -> None:
    duels = judged([[3]] * 14 + [[2]] * 6 + [[]] * 5)
    assert duels.p == pytest.approx(anytime_p(np.repeat((1.0, -1.0, 0.0), (14, 6, 5))))


@pytest.mark.usefixtures("simulated")
@pytest.mark.requirement("P5.implicit")
def test_signals_without_labels_favour_neither_of_equal_pipelines_and_show_the_better_one_sooner() -> None:
    """Docs/decisions/0106 has the figures of 300 experiments per reader."""
    rng = np.random.default_rng(7)
    leads, wrong = [], 0
    for reader in READERS.values():
        for log in (simulated_log(rng, reader, 1.5, 1.5) for _ in range(25)):
            looks = [log.judged(seen, "signals") for seen in LOOKS]
            wrong += any(duels.verdict != "undecided" for duels in looks)
            leads.append(looks[-1].lead)
    assert wrong <= 0.05 * len(leads)
    assert abs(np.mean(leads)) < 4 * np.std(leads) / np.sqrt(len(leads))

    logs = [simulated_log(rng, READERS["opens much, cites and rephrases"], 1.2, 1.8) for _ in range(25)]
    by_uses, by_signals = (np.mean([log.judged(QUERIES, rule).lead for log in logs]) for rule in ("uses", "signals"))
    assert by_signals > by_uses
