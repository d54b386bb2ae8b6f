"""The JSON Schema of pipeline files, as an editor uses it: what is wrong is told of the step that is meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no types of its own
import pytest
import yaml

from speckit_memory.config.workspace.settings import workspace_root
from speckit_memory.engine.pipelines import pipelines

CONFIG = workspace_root(Path(__file__).parent) / "config"
MISTAKES = {
    "fusion: [{use: z_scroe}]": "$.fusion[0].use",
    "fusion: [rff]": "$.fusion[0]",
    "fusion: [validation]": "$.fusion[0]",
    "fusion: []": "$.fusion",
    "fusion:": "$.fusion",
    "fusion: [z_score, mmr]": "$.fusion[1]",
    "fusion: [{use: z_score, wieghts: {}}]": "wieghts",
    "fusion: [{use: z_score, weights: {bm25: -1}}]": "$.fusion[0].weights.bm25",
    "fusion: [{use: z_score, weights: by_itent}]": "$.fusion[0].weights",
    "fusion: [{use: z_score, missing: highest}]": "$.fusion[0].missing",
    "fusion: {move: [z_score]}": "move",
    "fusion: {add: [{use: rrf, kk: 3}]}": "kk",
    "fusion: {change: [{id: z_score, wieghts: {}}]}": "wieghts",
    "fusion: {change: [{id: mine, use: rrf, k: x}]}": "$.fusion.change[0].k",
    "fusion: {change: [{weights: {}}]}": "id",
    "fusion: {remove: z_score}": "$.fusion.remove",
    "candidates: {channels: []}": "$.candidates.channels",
    "candidates: {channels: [{use: bm25, limit: 0}]}": "$.candidates.channels[0].limit",
    "candidates: {chanels: [bm25]}": "chanels",
    "rerank: [{use: pin, before: mmr}]": "before",
    "rerank: [{use: pin, flag: []}]": "$.rerank[0].flag",
    "rerank: [{use: pin, optional: maybe}]": "$.rerank[0].optional",
    "rerank: [{mmr: {}}]": "use",
    "rerank: [min_max, {use: mmr, lambda: 3}]": "$.rerank[1].lambda",
    "annotate: [mmr]": "$.annotate[0]",
    "shadows: catalogue": "$.shadows",
    "shadows: [{use: catalogue, sampel: 1}]": "sampel",
    "budgets_ms: {simple: -1}": "$.budgets_ms.simple",
    "chanels: [bm25]": "chanels",
}
SOUND = (
    "fusion: {change: [{id: trial_rrf, k: 3}], add: null, remove: [trial_rsf]}",
    "fusion: [{use: z_score, weights: by_intent}, validation]",
    "fusion: [{use: z_score, weights: {bm25: 1}}]",
    "rerank: [{use: pin, flag: SPECKIT_MMR}, {use: pin, id: other, flag: [SPECKIT_MMR]}]",
    "rerank: []",
    "shadows: [catalogue, {use: bm25, sample: 0.5}]",
)


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = pipelines.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.requirement("P7.schema")
@pytest.mark.parametrize(("text", "named"), MISTAKES.items())
def test_a_mistake_is_told_by_its_place_or_its_name(validator: Any, text: str, named: str) -> None:
    assert pipelines.check(yaml.safe_load(text), {})
    errors = list(validator.iter_errors(yaml.safe_load(text)))
    assert any(error.json_path == named or f"'{named}'" in error.message for error in errors), errors
    assert not any("any of the given schemas" in error.message for error in errors)


@pytest.mark.requirement("P7.schema")
@pytest.mark.parametrize(
    "text", [*SOUND, *(path.read_text() for path in (CONFIG / "pipeline.yaml", *sorted(CONFIG.glob("presets/*.yaml"))))]
)
def test_what_the_product_takes_the_schema_takes(validator: Any, text: str) -> None:
    assert [error.message for error in validator.iter_errors(yaml.safe_load(text))] == []
