"""Each step of the default is exercised by the ground truth that ships."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from speckit_memory.config.workspace.settings import EVALUATION_VARIABLE
from speckit_memory.engine import Memory, components
from speckit_memory.evaluation import bundled
from speckit_memory.evaluation.datasets.dataset import Dataset, read
from speckit_memory.evaluation.measuring.measure import ThrowawayStore, throwaway_store
from speckit_memory.pipeline.configuration.builder import check_pipeline, examine
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.variants import without

ENVIRON = {EVALUATION_VARIABLE: "off"}
REGISTRY = components.registry(ENVIRON)
WHOLE = examine("default", REGISTRY, ENVIRON, None).effective
STEPS = [step.id for step in WHOLE.steps() if not step.flags]
NEEDED = ("bm25", "z_score")
ENCODING = ("encoder", "encoder_notice")
"""Steps that wait for an encoder, which does not ship."""
"""Steps without which no pipeline can be built."""
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "spelling": ("a27", {}),
    "pressure": ("a01", {"token_usage": 0.9}),
    "expansion": ("s23", {}),
    "quick_look": ("u37", {}),
    "trigger": ("a02", {}),
    "identifier": ("d34", {}),
    "named": ("d34", {}),
    "superseded": ("d35", {}),
    "times": ("d36", {}),
    "acronyms": ("d37", {}),
    "dated": ("d36", {}),
    "fallback": ("a01", {"folder": "folder/without/documents"}),
    "anchor_filter": ("a01", {"anchors": ["judging"]}),
    "session_dedup": ("a01", {"session": "s"}),
}
"""The query on which a step acts, and what else is asked for; a01 as it is for all others."""


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return read(bundled.FOLDER)


@pytest.fixture(scope="module")
def store(dataset: Dataset) -> Iterator[ThrowawayStore]:
    with throwaway_store(dataset, [WHOLE], environ=ENVIRON, progress=lambda _: None) as opened:
        yield opened


def variant(step: str) -> Effective:
    checked = check_pipeline(without(WHOLE, step), REGISTRY)
    return (check_pipeline(without(WHOLE, step, forgotten=True), REGISTRY) if checked.problems else checked).effective


def essence(memory: Memory, text: str, step: str, **asked: Any) -> dict[str, Any]:
    """What an answer holds, without what merely lists the steps of its pipeline."""
    answer = memory.search(text, deadline_ms=None, snippet=0, now=1_790_000_000.0, **asked).as_json()
    for name in ("query_id", "pipeline", "timings_ms"):
        del answer[name]
    answer["plan"].pop("reasons")
    answer["plan"]["channels"] = [name for name in answer["plan"]["channels"] if name != step]
    answer["notes"].get("attribution", {}).pop(step, None)
    for row in answer["results"]:
        row.pop("steps")
    return answer


@pytest.mark.requirement("E3.exercised")
@pytest.mark.parametrize("step", [step for step in STEPS if step not in NEEDED + ENCODING])
def test_there_is_a_query_on_which_a_step_of_the_default_acts(
    step: str, dataset: Dataset, store: ThrowawayStore
) -> None:
    name, asked = ASKED.get(step, ("a01", {}))
    query = next(query for query in dataset.queries if query.id == name)
    asked = {"folder": query.folder, "mode": query.mode, **asked}
    (memory,) = store.memories
    with memory.using(variant(step)) as other:
        assert essence(memory, query.text, step, **asked) != essence(other, query.text, step, **asked)


def test_steps_without_which_nothing_can_be_built_are_those_two() -> None:
    assert [step for step in STEPS if check_pipeline(without(WHOLE, step, forgotten=True), REGISTRY).problems] == list(
        NEEDED
    )
