from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from speckit_memory.engine import Memory
from speckit_memory.engine.answers.results import SearchResult


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    (tmp_path / "fusion.md").write_text("# Rank fusion\n\nScores of channels are fused.\n")
    with Memory.open(tmp_path / "m.db", root=tmp_path, environ={}) as opened:
        opened.index(tmp_path)
        yield opened


def test_further_warnings_make_another_answer_and_leave_the_first_as_it_was(memory: Memory) -> None:
    result = memory.search("fusion quokkka")
    own = result.notes.warnings

    warned = result.warned(before=["first"], after=iter(["last"]))

    assert warned.notes.warnings == ("first", *own, "last")
    assert warned.as_json()["notes"]["warnings"] == ["first", *own, "last"]
    assert (result.notes.warnings, warned.results) == (own, result.results)


@pytest.mark.parametrize("part", ["", "plan", "notes", "timings_ms", "pipeline"])
def test_no_part_of_an_answer_can_be_set(memory: Memory, part: str) -> None:
    result = memory.search("fusion")
    whole = getattr(result, part) if part else result

    for field in dataclasses.fields(whole):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(whole, field.name, None)


@pytest.mark.requirement("P8")
def test_the_document_of_an_answer_says_what_its_parts_say_and_is_the_readers_own(memory: Memory) -> None:
    result = memory.search("fusion quokkka")
    document = result.as_json()

    assert json.loads(json.dumps(document)) == document
    assert document["plan"]["channels"] == list(result.plan.channels)
    assert document["pipeline"] == {"name": "default", "hash": result.pipeline.hash}
    assert [step["ms"] for step in document["timings_ms"]["steps"]] == [step.ms for step in result.timings_ms.steps]
    assert list(document["timings_ms"]) == [field.name for field in dataclasses.fields(result.timings_ms)]
    assert list(document["notes"]) == ["evidence_gap", *result.notes.facts, "warnings", "degraded"]
    for part in ("plan", "notes", "timings_ms", "pipeline"):
        document[part].clear()
    assert _said(result) == _said(memory.search("fusion quokkka"))


def _said(result: SearchResult) -> list[object]:
    document = result.as_json()
    return [document[part] for part in ("query", "plan", "results", "notes", "pipeline")]
