"""Whatever writes a pipeline writes one that does the same (feature P2)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tiers import examples

from speckit_memory.config.yaml.editor import flow_style
from speckit_memory.engine import components
from speckit_memory.engine.pipelines import pipelines
from speckit_memory.pipeline.configuration.builder import examine

WEIGHT = st.floats(0, 2).map(lambda value: round(value, 2))
CHANNELS = ("bm25", "vector", "graph", "trigger", "identifier", "constitutional")
NAMES = st.one_of(st.sampled_from(["mine", "on", "No", "null", "a: b", "# c", "'", '"', "1", "é, ü"]), st.just(""))


def mappings(keys: tuple[str, ...]) -> st.SearchStrategy[dict[str, float]]:
    return st.dictionaries(st.sampled_from(keys), WEIGHT)


BM25 = st.fixed_dictionaries(
    {"use": st.just("bm25")},
    optional={"single": mappings(("title", "body")), "fields": mappings(("triggers", "path")), "k1": WEIGHT},
)
FUSERS = st.one_of(
    st.fixed_dictionaries({"use": st.just("z_score")}, optional={"weights": mappings(CHANNELS[:2] + CHANNELS[4:5])}),
    st.fixed_dictionaries(
        {"use": st.just("z_score"), "id": st.sampled_from(["fuse", "no", "a b"]), "weights": mappings(CHANNELS[:2])}
    ),
    st.fixed_dictionaries({"use": st.just("rrf"), "normalise": st.just("min_max")}, optional={"k": st.just(20)}),
)
RERANKERS: list[dict[str, object]] = [
    {"use": "maxsim", "pool": 5},
    {"use": "regularise", "optional": False},
    {"use": "min_max"},
]
RERANK = st.lists(
    st.sampled_from(RERANKERS),
    unique_by=lambda step: str(step["use"]),
)
OWN = st.fixed_dictionaries(
    {},
    optional={
        "pipeline": NAMES,
        "budgets_ms": st.dictionaries(st.sampled_from(["simple", "shadow"]), st.integers(1, 900)),
        "candidates": st.builds(
            lambda bm25, others: {"channels": [bm25, *others, "identifier"]},
            BM25,
            st.lists(st.sampled_from(["vector", "graph", "trigger", "constitutional"]), unique=True, min_size=1),
        ),
        "fusion": FUSERS.map(lambda fuser: [fuser]),
        "rerank": RERANK.map(lambda steps: [*steps, {"use": "pin", "id": "named"}]),
    },
)
"""Files that extend the shipped pipeline."""
SET = st.dictionaries(
    st.sampled_from(["bm25.single.title", "bm25.fields.body", "bm25.b"]), st.floats(0.1, 1), max_size=2
)


def document(own: Mapping[str, Any]) -> str:
    return "".join(f"{key}: {flow_style(value)}\n" for key, value in own.items()) or "# nothing differs\n"


FORMS = ("shown", "shown with origin", "effective", "effective with origin", "written")


def in_form(form: str, source: str, overrides: Mapping[str, str]) -> str:
    match form:
        case "written":
            return pipelines.pipeline_text_with(
                source, {}, overrides, file=Path("made.yaml"), heading=["h"], remarks={}
            )
    effective, origin = form.startswith("effective"), form.endswith("origin")
    return pipelines.show(source, {}, overrides, effective=effective, origin=origin)


@settings(max_examples=examples(0.2))
@given(own=OWN, changed=SET, form=st.sampled_from(FORMS))
@pytest.mark.requirement("P2")
def test_what_is_written_out_in_any_form_has_the_same_hash_and_no_problem(
    own: dict[str, Any], changed: dict[str, float], form: str
) -> None:
    overrides = {path: flow_style(value) for path, value in changed.items()}
    with TemporaryDirectory() as folder:
        source, again = Path(folder) / "own.yaml", Path(folder) / "again.yaml"
        source.write_text(document(own), encoding="utf-8")
        whole = examine(str(source), components.registry(), {}, overrides)
        assume(not whole.problems)  # scales that do not agree
        again.write_text(in_form(form, str(source), overrides), encoding="utf-8")
        found = examine(str(again), components.registry(), {})
        assert [str(problem) for problem in found.problems] == []
        assert found.hash == whole.hash
        differs = examine(str(source), components.registry(), {}).hash != whole.hash
        assert bool(pipelines.diff(str(source), str(again), {})) is differs


SHORT = """\
# mine
fusion:
  - {use: z_score, weights: {}}  # as below
candidates:
  channels:
    - use: bm25
    - vector
    - graph
    - trigger
    - identifier
    - constitutional
"""


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (
            {"z_score.weights.graph": "0.4", "z_score.weights.trigger": "0.5"},
            "  - {use: z_score, weights: {graph: 0.4, trigger: 0.5}}  # as below",
        ),
        ({"bm25.single.title": "0.4", "bm25.single.body": "0.1"}, "      single: {title: 0.4, body: 0.1}"),
        ({"bm25.single": "{body: 0.1}", "bm25.k1": "1"}, "      k1: 1"),
    ],
)
def test_new_keys_join_those_that_a_file_writes(overrides: dict[str, str], line: str, tmp_path: Path) -> None:
    file, made = tmp_path / "own.yaml", tmp_path / "made.yaml"
    file.write_text(SHORT, encoding="utf-8")
    text = pipelines.pipeline_text_with(str(file), {}, overrides, file=Path("made.yaml"), heading=[], remarks={})
    assert text.startswith("# mine\npipeline: made\nfusion:\n")
    assert line in text.splitlines()
    made.write_text(text, encoding="utf-8")
    wanted, found = (
        examine(str(one), components.registry(), {}, given) for one, given in ((file, overrides), (made, {}))
    )
    assert found.hash == wanted.hash
