from __future__ import annotations

from pathlib import Path

import ir_measures
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ir_measures import RR, R, Success, nDCG

from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.datasets.trec import check_run_file, write_run
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
