"""`--dataset bundled`: the ground truth that ships, from any folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.evaluation import bundled
from tests.server.doors import call

MEASURED = ["eval", "run", "--pipeline", "bm25", "--queries", "10", "--json", "--dataset"]


@pytest.mark.requirement("E3", "E3.anywhere")
def test_it_is_measured_by_its_name_wherever_one_stands(tmp_path: Path) -> None:
    by_name = call(tmp_path, [*MEASURED, "bundled"])
    by_path = call(tmp_path, [*MEASURED, bundled.FOLDER])

    assert by_name.status == 0, by_name.err
    assert by_name.json["dataset"] == "bundled"
    assert by_name.json["excluded"] == by_path.json["excluded"]
    assert by_name.json["pipelines"][0]["metrics"] == by_path.json["pipelines"][0]["metrics"]


@pytest.mark.requirement("E3.negatives")
def test_unanswerable_questions_are_asked_and_told_by_who_warns_and_never_scored(tmp_path: Path) -> None:
    ran = call(tmp_path, ["eval", "run", "--dataset", "bundled", "--pipeline", "default", "--pipeline", "bm25",
                          "--queries", "20", "--json"])  # fmt: skip
    default, bm25 = (pipeline["restraint"] for pipeline in ran.json["pipelines"])

    assert (ran.json["queries"], ran.json["excluded"]["no_relevant"]) == (20, default["unanswerable"])
    assert default["unanswerable"] >= 14
    # hard negatives are near the limit: a page more or less among the documents moves one or two of 19
    assert default["warned"] > 3 * default["false_alarms"] > 0 == bm25["warned"]


def test_a_folder_of_that_name_is_given_as_a_path(tmp_path: Path) -> None:
    (tmp_path / "bundled").mkdir()

    assert call(tmp_path, [*MEASURED, "bundled"]).status == 0
    refused = call(tmp_path, [*MEASURED, "./bundled"])
    assert (refused.status, "has no file corpus.jsonl" in refused.err + refused.out) == (2, True)


def test_queries_can_be_made_of_its_documents(tmp_path: Path) -> None:
    made = call(tmp_path, ["eval", "make-queries", "--dataset", "bundled", "--kind", "words", "--queries", "5",
                           "--out", "made", "--json"])  # fmt: skip

    assert made.status == 0, made.err
    assert (tmp_path / "made" / "queries.jsonl").read_text().count("\n") == 5
