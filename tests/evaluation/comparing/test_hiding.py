"""What can hide behind the queries of a gate: losses that none of them shows count too."""

from __future__ import annotations

import numpy as np
import pytest

from speckit_memory.evaluation.statistics.sequential import largest_loss, queries_to_rule_out
from speckit_memory.pipeline.ports import Column


@pytest.mark.requirement("E8.hidden")
@pytest.mark.parametrize("gain", [0.0, 0.1, 1.0])
def test_queries_that_lose_nothing_do_not_rule_out_rare_losses(gain: float) -> None:
    few = np.r_[np.zeros(19), gain]
    assert 0.1 < largest_loss(few, alpha=0.05) < 0.17
    assert largest_loss(np.tile(few, 50), alpha=0.05) < largest_loss(few, alpha=0.05) / 10


def test_a_loss_that_one_query_in_twenty_has_hides_no_oftener_than_in_five_of_a_hundred_draws() -> None:
    chance = np.random.default_rng(5)

    def missed(draw: Column, loss: float) -> bool:
        return largest_loss(draw, alpha=0.05) < loss

    rare = [np.where(chance.random(40) < 0.05, -1.0, 0.02) for _ in range(400)]
    spread = [chance.choice([-0.5, 0.0, 0.25], 60, p=[0.2, 0.5, 0.3]) for _ in range(400)]
    assert np.mean([missed(draw, 0.05 - 0.95 * 0.02) for draw in rare]) <= 0.05
    assert np.mean([missed(draw, 0.025) for draw in spread]) <= 0.05


def test_many_small_losses_hide_little_more_than_they_are_and_a_gain_hides_none() -> None:
    small = np.where(np.arange(1_000) % 3 == 0, -0.01, 0.0)
    assert 0.0033 < largest_loss(small, alpha=0.05) < 0.01
    assert largest_loss(np.full(200, 0.1), alpha=0.05) == 0.0
    assert largest_loss(np.array([-1.0, -1.0]), alpha=0.05) == pytest.approx(1.0)


@pytest.mark.parametrize("gain", [0.0, 0.1])
def test_as_many_queries_as_are_said_to_be_needed_rule_the_margin_out(gain: float) -> None:
    few = np.r_[np.zeros(19), gain]
    needed = queries_to_rule_out(0.02, few, alpha=0.05)
    assert needed is not None
    assert needed > 100
    assert largest_loss(np.resize(few, needed), alpha=0.05) <= 0.02
    assert largest_loss(np.resize(few, needed // 2), alpha=0.05) > 0.02
    assert queries_to_rule_out(0.02, np.full(50, -0.2), alpha=0.05) is None
