from __future__ import annotations

import click
import pytest

from speckit_memory.engine.answers.results import Explanation
from speckit_memory.pipeline.running.explain import StepExplanation
from speckit_memory.server.views.recombination import arithmetic, render_recombination


def step(
    kind: str, parts: dict[str, float], before: float | None, after: float, name: str = "s", formula: str = ""
) -> StepExplanation:
    return StepExplanation(name, kind, "unit", parts, before, after, formula)


@pytest.mark.parametrize(
    ("explained", "said"),
    [
        (step("sum", {"bm25": 1.25, "graph": -0.3, "trigger": 0.0}, None, 0.95), "bm25 1.2500 - graph 0.3000 = 0.9500"),
        (step("sum", {"bm25": 0.004918, "vector": 0.003}, None, 0.007918), "bm25 0.004918 + vector 0.003 = 0.007918"),
        (step("sum", {"bm25": 0.0}, None, 0.0), "0 = 0.0000"),
        (step("add", {"s": 0.25}, 1.0, 1.25), "1.0000 + 0.2500 = 1.2500"),
        (step("add", {"s": -0.25}, 1.0, 0.75), "1.0000 - 0.2500 = 0.7500"),
        (step("multiply", {"s": 2.0}, 1.5, 3.0), "1.5000 × 2.0000 = 3.0000"),
        (step("multiply", {"a": 2.0, "b": 1.0}, 1.5, 3.0), "1.5000 × a 2.0000 = 3.0000"),
        (step("replace", {"s": 1.0}, 3.1, 1.0), "3.1000 → 1.0000"),
        (step("replace", {"old": 0.5, "new": 0.7}, 0.5, 0.6), "0.5000 → 0.6000 (old 0.5000, new 0.7000)"),
        (
            step("formula", {"gain": 3.0, "better": -0.5}, 1.0, -0.5, formula="before + gain * better"),
            "1.0000 + gain 3.0000 × better (-0.5000) = -0.5000",
        ),
        (
            step("formula", {"low": 1.0, "all_of": 2.0}, 2.0, 0.5, formula="(before - low) / all_of"),
            "(2.0000 - low 1.0000) / all of 2.0000 = 0.5000",
        ),
    ],
)
def test_a_step_reads_as_the_sum_it_is(explained: StepExplanation, said: str) -> None:
    assert arithmetic(explained) == said


def test_steps_that_changed_nothing_share_a_line() -> None:
    steps = (
        step("sum", {"bm25": 1.0}, None, 1.0, "z_score"),
        step("replace", {"pin": 1.0}, 1.0, 1.0, "pin"),
        step("add", {"recency": 0.5}, 1.0, 1.5, "recency"),
        step("add", {"causal": 0.0}, 1.5, 1.5, "causal"),
    )
    assert click.unstyle(render_recombination(Explanation(1, "a.md", steps, {}), "  ")).splitlines() == [
        "  z_score  bm25 1.0000 = 1.0000",
        "  recency  1.0000 + 0.5000 = 1.5000",
        "  left unchanged by pin, causal",
    ]
