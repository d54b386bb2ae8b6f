"""Whatever a pipeline comes from goes through the same door, with the same checks (feature P2)."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.config.pipelines.document import read, read_text
from speckit_memory.engine import Memory, components
from speckit_memory.engine.pipelines import pipelines
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.configuration.builder import examine
from speckit_memory.pipeline.configuration.loading import PipelineSource, load
from speckit_memory.pipeline.configuration.variants import without

TEXT = """\
pipeline: mine
extends: none
candidates: {channels: [{use: bm25, limit: 7}, vector]}
fusion: [{use: z_score, weights: {bm25: 0.7, vector: 0.3}}]
rerank: [collapse]
"""
MAPPING: dict[str, Any] = {
    "pipeline": "mine",
    "extends": "none",
    "candidates": {"channels": ({"use": "bm25", "limit": 7}, "vector")},
    "fusion": [{"use": "z_score", "weights": {"bm25": 0.7, "vector": 0.3}}],
    "rerank": ["collapse"],
}


def in_file(folder: Path) -> Path:
    file = folder / "mine.yaml"
    file.write_text(TEXT, encoding="utf-8")
    return file


SOURCES: dict[str, Callable[[Path], PipelineSource]] = {
    "path as text": lambda folder: str(in_file(folder)),
    "path": in_file,
    "mapping": lambda _: MAPPING,
    "document of a path": lambda folder: read(in_file(folder)),
    "document of a mapping": lambda _: read(MAPPING),
    "document of a text": lambda _: read_text(TEXT),
    "effective": lambda _: load(MAPPING, {}),
}


@pytest.mark.requirement("P2")
@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_source_opens_and_searches_as_the_same_pipeline(kind: str, tmp_path: Path) -> None:
    source = SOURCES[kind](tmp_path)
    expected = examine(read_text(TEXT), components.registry(), {}).hash
    (tmp_path / "note.md").write_text("# Kumquats\n\nSmall fruit.\n", encoding="utf-8")
    with Memory.open(tmp_path / "m.db", source, root=tmp_path, environ={}) as memory:
        memory.index([tmp_path / "note.md"])
        result = memory.search("kumquats")
        assert (result.pipeline.name, result.pipeline.hash) == ("mine", expected)
        assert [row.key for row in result.results] == ["note.md"]
        assert memory.using("bm25").using(source).pipelines.current.hash == expected
        changed = memory.using(source, {"bm25.limit": "8"}).pipelines.current.hash
        assert changed == memory.using(MAPPING, {"bm25.limit": "8"}).pipelines.current.hash != expected


def test_a_preset_is_known_by_its_name_and_a_path_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Memory.open(tmp_path / "m.db", "bm25", environ={}) as memory:
        assert memory.pipelines.current.name == memory.session.settings.pipeline == "bm25"
        with pytest.raises(SpeckitError, match="E121"):
            memory.using(Path("bm25"))
        (tmp_path / "bm25").write_text(TEXT, encoding="utf-8")
        assert memory.using(Path("bm25")).pipelines.current.name == "mine"


def test_an_empty_mapping_is_the_shipped_pipeline_whatever_the_environment_names(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", {}, environ={"SPECKIT_PIPELINE": "bm25"}) as memory:
        assert memory.pipelines.current.hash == memory.using("default").pipelines.current.hash
        assert memory.pipelines.current.name == "(mapping)"


def test_a_mapping_says_only_what_differs_from_what_it_extends(tmp_path: Path) -> None:
    heir = {"extends": str(in_file(tmp_path)), "fusion": [{"use": "z_score", "weights": {"bm25": 0.6}}]}
    (fuser,) = load(heir, {}).slots["fusion"]
    assert [(e.key, str(e.value.where)) for e in fuser.params.get("weights").value.entries] == [  # type: ignore[union-attr]
        ("bm25", "(mapping): fusion[0].weights.bm25"),
        ("vector", f"{tmp_path / 'mine.yaml'}:4:54"),
    ]


@pytest.mark.requirement("P7")
def test_a_wrong_mapping_yields_all_its_problems_with_paths_of_keys(tmp_path: Path) -> None:
    wrong: dict[Any, Any] = {
        "extends": "none",
        "budgets": {},
        "candidates": {"channels": [{"use": "bm52"}, {"use": "vector", "limit": float("nan")}, {"use": "vector"}]},
        "fusion": [{"use": "z_score", "weights": {"vector": -1}}, {"use": "importance", "optional": "no"}],
        "rerank": [{"use": "mmr", "lambda": object}, {"id": "x"}, {"use": "regularise", "flag": "SPECKIT_X"}],
        "annotate": {"use": "evidence_gap"},
        7: None,
    }
    with pytest.raises(SpeckitError) as caught:
        Memory.open(tmp_path / "m.db", wrong, environ={})
    assert not (tmp_path / "m.db").exists()
    assert [(str(problem.where), problem.code) for problem in caught.value.problems] == [
        ("(mapping)", "E114"),
        ("(mapping): budgets", "E115"),
        ("(mapping): candidates.channels[0].use", "E116"),
        ("(mapping): candidates.channels[1].limit", "E114"),
        ("(mapping): candidates.channels[2]", "E119"),
        ("(mapping): fusion[0].weights.vector", "E118"),
        ("(mapping): fusion[1].optional", "E114"),
        ("(mapping): rerank[0].lambda", "E114"),
        ("(mapping): rerank[1]", "E114"),
        ("(mapping): rerank[2].flag", "E120"),
        ("(mapping): annotate", "E114"),
    ]
    messages = [problem.message for problem in caught.value.problems]
    assert "taken by the step at candidates.channels[1];" in messages[4]
    assert messages[7].startswith("found <class 'object'>, of the type type; accepted: ")
    wheres = [document["where"] for document in caught.value.as_json()["errors"]]
    assert wheres[2] == {"file": "(mapping)", "path": "candidates.channels[0].use"}


def test_a_mapping_that_holds_itself_or_too_much_is_refused() -> None:
    endless: dict[str, Any] = {"extends": "none"}
    endless["fusion"] = [endless]
    assert any("nested deeper than 40 levels" in problem.message for problem in read(endless).problems)
    wide = read({"rerank": [{"use": "mmr", "values": list(range(20_000))}]})
    assert [problem.message for problem in wide.problems] == ["more than 10,000 keys and values"]


def test_what_was_read_of_a_mapping_does_not_change_with_it() -> None:
    given = {"fusion": [{"use": "z_score", "weights": {"bm25": 0.5}}]}
    document = read(given)
    before = examine(document, components.registry(), {}).hash
    given["fusion"][0]["weights"] = {"bm25": 9.0}
    assert examine(document, components.registry(), {}).hash == before != examine(given, components.registry(), {}).hash


def test_what_a_text_extends_is_looked_for_where_the_text_is_said_to_be(tmp_path: Path) -> None:
    in_file(tmp_path)
    there = read_text("extends: mine.yaml\n", str(tmp_path / "other.yaml"))
    assert pipelines.check(there, {}) == []
    (problem,) = pipelines.check(read_text("extends: mine.yaml\n"), {})
    assert (problem.code, str(problem.where)) == ("E121", "(text):1:10")


def test_values_travel_to_other_processes_and_are_written_as_text() -> None:
    variant = without(load(MAPPING, {}), "vector", forgotten=True)
    assert pickle.loads(pickle.dumps(variant)) == variant
    shown = pipelines.show(variant, {}, origin=True)
    assert "limit: 7  # (mapping): candidates.channels[0].limit" in shown
    assert examine(read_text(shown), components.registry(), {}).hash == examine(variant, components.registry(), {}).hash
    assert pipelines.diff(variant, read_text(shown), {}) == ""


def test_what_the_page_about_pipelines_shows_in_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parents[2].joinpath("docs", "pipeline.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    said: dict[str, Any] = {}
    exec(shown, said)
    assert said["memory"].pipelines.current.hash == examine("catalogue", components.registry(), {}).hash


def test_health_says_that_a_value_was_given_and_does_not_compare_it_with_files(tmp_path: Path) -> None:
    file = in_file(tmp_path)
    with Memory.open(tmp_path / "m.db", read(file), root=tmp_path, environ={}) as memory:
        file.write_text("pipeline: another\nextends: bm25\n", encoding="utf-8")
        (told,) = [check for check in memory.status().checks if check.name == "pipeline"]
        assert told.ok
        assert told.detail.endswith("chosen by this call, as a value")


@pytest.mark.parametrize(("word", "code"), [("no", "E113"), ('"no"', "E114")])
def test_a_switch_that_is_no_switch_is_one_problem(word: str, code: str) -> None:
    text = TEXT.replace("[collapse]", f"[{{use: collapse, optional: {word}}}]")
    assert [(p.code, str(p.where)) for p in pipelines.check(read_text(text), {})] == [(code, "(text):5:36")]
