from __future__ import annotations

from pathlib import Path

import ir_measures
import pytest
from answered import refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ir_measures import RR, R, Success, nDCG

from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.datasets.trec import (
    check_qrels_file,
    check_run_file,
    read_qrels,
    read_runs,
    write_qrels,
    write_run,
)
from speckit_memory.evaluation.statistics.metrics import evaluate

ORACLE = {"nDCG@10": nDCG @ 10, "MRR@5": RR @ 5, "Recall@20": R @ 20, "Hit@1": Success @ 1}


def test_a_run_line_names_query_document_rank_score_and_pipeline(tmp_path: Path) -> None:
    runs = {"bm25": {"q1": [("a", 2.5), ("b", 1.0)], "q2": []}, "my own": {"q1": [("b", -0.125)]}}
    write_run(tmp_path / "out.run", runs)
    assert (tmp_path / "out.run").read_text(encoding="utf-8") == (
        "q1 Q0 a 1 2.5 bm25\nq1 Q0 b 2 1.0 bm25\nq1 Q0 b 1 -0.125 my_own\n"
    )


@pytest.mark.requirement("E2")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from([0.0, 0.1, 0.1 + 1e-12, 1 / 3, 7.0, -2.0]), min_size=1, max_size=25))
def test_figures_recomputed_from_a_run_file_with_tied_scores_are_the_reported_ones(
    tmp_path: Path, scores: list[float]
) -> None:
    ranking = [(f"d{row}", score) for row, score in enumerate(sorted(scores, reverse=True))]
    judgements = {"d0": 1.0, "d3": 2.0, "d11": 1.0, "d24": 3.0}
    write_run(tmp_path / "out.run", {"tied": {"q": ranking}})
    run = list(ir_measures.read_trec_run(str(tmp_path / "out.run")))  # type: ignore[no-untyped-call]
    qrels = {"q": {key: int(grade) for key, grade in judgements.items()}}
    values = evaluate([[key for key, _ in ranking]], [judgements])
    recomputed = ir_measures.calc_aggregate(list(ORACLE.values()), qrels, run)
    assert {metric: float(column[0]) for metric, column in values.items()} == pytest.approx(
        {metric: recomputed[measure] for metric, measure in ORACLE.items()}
    )


def test_ids_that_would_break_a_run_line_and_impossible_places_are_refused_before_the_work(tmp_path: Path) -> None:
    check_run_file(tmp_path / "out.run", ["a", "b/c:d"])
    with pytest.raises(SpeckitError) as caught:
        check_run_file(tmp_path / "nowhere" / "out.run", ["a", "two words"])
    assert sorted(problem.code for problem in caught.value.problems) == ["E014", "E123"]
    assert "'two words'" in str(caught.value)
    with pytest.raises(SpeckitError, match="is a folder"):
        check_run_file(tmp_path, [])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from([0.0, 0.1, 0.1 + 1e-12, 1 / 3, 7.0, -2.0]), min_size=1, max_size=25))
def test_a_run_file_is_read_in_the_order_in_which_it_was_written(tmp_path: Path, scores: list[float]) -> None:
    ranking = [(f"d{row}", score) for row, score in enumerate(sorted(scores, reverse=True))]
    write_run(tmp_path / "out.run", {"one": {"q": ranking}})
    assert [key for key, _ in read_runs(tmp_path / "out.run")["one"]["q"]] == [key for key, _ in ranking]


def test_the_rank_column_says_nothing_and_ties_go_to_the_later_name(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q Q0 a 1 1.0 t\nq Q0 b 2 1.0 t\nq Q0 c 3 5 t\n")
    assert [key for key, _ in read_runs(tmp_path / "a.run")["t"]["q"]] == ["c", "b", "a"]


def test_every_wrong_line_of_a_run_file_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "bad.run"
    file.write_text("q Q0 a 1 1.0 t\nq Q0 a 2 0.5 t\nq Q0 b 3 high t\nshort line\n\nq Q0 c 4 nan t\n")
    with pytest.raises(SpeckitError) as caught:
        read_runs(file)
    places = [(problem.code, problem.where.line) for problem in caught.value.problems if problem.where]
    assert places == [("E123", 2), ("E123", 3), ("E123", 4), ("E123", 6)]
    assert "'a' occurs twice in the ranking of 'q' by t" in str(caught.value.problems[0])
    assert "found 2 cells in 'short line'" in str(caught.value.problems[2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no document is relevant to any query"),
        ("q 0 a 0\n", "no document is relevant to any query"),
        ("q 0 a 1\nq 0 a 2\n", "'a' is judged twice for 'q', as 1 and as 2"),
        ("q 0 a one\n", "the grade must be a number; found 'one'"),
        ("q a 1\n", "a line must be query iteration document grade"),
        ("query-id\tcorpus-id\tscore\nq\ta\n", "a line must be query-id corpus-id score, separated by tabs"),
    ],
)
def test_judgements_that_are_none_are_told_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "qrels").write_text(text)
    with refused("E123", match=message):
        read_qrels(tmp_path / "qrels")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for read in (read_runs, read_qrels):
        with pytest.raises(SpeckitError, match=r"there is no file '.*none'"):
            read(tmp_path / "none")


def test_judgements_are_read_as_they_were_written(tmp_path: Path) -> None:
    judgements = {"q1": {"a": 1.0, "b/c": 0.0}, "q2": {"a": 0.5}}
    write_qrels(tmp_path / "out", judgements)
    assert read_qrels(tmp_path / "out") == judgements
    check_qrels_file(tmp_path / "out", ["a"])
    (tmp_path / "mine.txt").write_text("my notes\n")
    with pytest.raises(SpeckitError, match="has other contents"):
        check_qrels_file(tmp_path / "mine.txt", ["a"])
