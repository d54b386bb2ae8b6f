from __future__ import annotations

from pathlib import Path

import judged_sets
import numpy as np
import pytest

from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.comparing.acceptance import good_enough
from speckit_memory.evaluation.comparing.baseline import PAUSE, PROCEED, RESAMPLES, Baseline, baseline, ratio_of
from speckit_memory.evaluation.comparing.sensitivity import VALUES, sensitivity
from speckit_memory.evaluation.ground_truth.ground import DatasetSource
from speckit_memory.server.reports.markdown import markdown

ENVIRON: dict[str, str] = {}
DAY = 86_400.0
NOW = 1_790_000_000.0


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged_sets.titles(tmp_path_factory.mktemp("sets") / "mixed", by_title=8, by_text=8, by_mention=8)


@pytest.fixture
def weighed(tmp_path: Path) -> Path:
    """The pipeline in which titles count as much as one says."""
    (tmp_path / "words.yaml").write_text(judged_sets.PIPELINE)
    return tmp_path / "words.yaml"


@pytest.mark.requirement("E5.values")
def test_the_k_of_rank_fusion_is_measured_at_five_values(mixed: Path) -> None:
    found = sensitivity(DatasetSource(mixed), "rrf", environ=ENVIRON)
    assert VALUES == (20, 40, 60, 80, 100)
    assert [point.value for point in found.points] == [20, 40, 60, 80, 100]
    assert [point.present for point in found.points] == [False, False, True, False, False]
    assert found.parameter == "rrf.k"


@pytest.mark.requirement("E5.measures")
def test_any_number_is_measured_by_tau_and_by_metrics_with_intervals(mixed: Path, weighed: Path) -> None:
    found = sensitivity(DatasetSource(mixed), weighed, parameter="bm25.single.title", values=(0, 1, 2), environ=ENVIRON)
    still, moved, far = found.points
    assert (still.present, still.kendall_tau_b, still.changed) == (True, 1.0, 0)
    assert moved.changed > 0
    assert moved.kendall_tau_b is not None
    assert moved.kendall_tau_b < 1.0
    for one in moved.metrics.values():
        assert one.ci95[0] <= one.mean <= one.ci95[1]
    assert set(moved.metrics) == {"nDCG@10", "MRR@5"}
    assert {c.a for c in (*moved.comparisons, *far.comparisons)} == {"words"}
    assert "bm25.single.title" in found.sentence


def test_a_number_that_changes_no_answer_is_said_to(mixed: Path) -> None:
    found = sensitivity(DatasetSource(mixed), "bm25", parameter="bm25.limit", values=(90, 100), environ=ENVIRON)
    assert found.sentence == "bm25.limit changes no answer to these 24 queries"


@pytest.mark.requirement("E5.none")
def test_a_pipeline_without_rank_fusion_says_which_numbers_it_has(mixed: Path) -> None:
    with pytest.raises(SpeckitError, match="'bm25' has no rank fusion, and so no k") as caught:
        sensitivity(DatasetSource(mixed), "bm25", environ=ENVIRON)
    assert "Its step 'bm25' has limit, k1, b" in caught.value.problems[0].hint
    with pytest.raises(SpeckitError, match=r"--parameter: 'bm25\.k2' is not a number of 'bm25'") as caught:
        sensitivity(DatasetSource(mixed), "bm25", parameter="bm25.k2", environ=ENVIRON)
    assert "bm25.k1 (1.2)" in caught.value.problems[0].hint


def test_a_value_that_is_not_accepted_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(SpeckitError, match=r"bm25\.b"):
        sensitivity(DatasetSource(tmp_path), "bm25", parameter="bm25.b", values=(7,), environ=ENVIRON)


@pytest.mark.requirement("E4.ratio")
def test_the_ratio_of_two_means_has_an_interval_over_pairs_of_queries() -> None:
    rng = np.random.default_rng(5)
    second = rng.choice([0.0, 0.5, 1.0], 400)
    ratio, interval = ratio_of(second * 0.7, second)
    assert ratio == pytest.approx(0.7)
    assert interval == pytest.approx((0.7, 0.7))
    first = np.where(rng.random(400) < 0.6, second, 0.0)
    ratio, interval = ratio_of(first, second)
    assert ratio is not None
    assert interval is not None
    assert interval[0] < ratio < interval[1]
    theory = np.std(first - ratio * second, ddof=1) / second.mean() / 20
    assert (interval[1] - interval[0]) / 3.92 == pytest.approx(theory, rel=0.1)
    assert RESAMPLES == 10_000
    assert ratio_of(first, np.zeros(400)) == (None, None)


@pytest.mark.requirement("E4.matrix")
@pytest.mark.parametrize(
    ("ratio", "interval", "decision", "possible"),
    [
        (0.9, (0.82, 0.95), "pause", ("pause",)),
        (0.8, (0.7, 0.9), "pause", ("pause", "proceed")),
        (0.6, (0.51, 0.79), "proceed", ("proceed",)),
        (0.49, (0.3, 0.49), "full", ("full",)),
        (0.6, (0.4, 0.85), "proceed", ("pause", "proceed", "full")),
    ],
)
def test_the_decision_follows_the_matrix_and_an_interval_across_a_border_leaves_it_open(
    mixed: Path, ratio: float, interval: tuple[float, float], decision: str, possible: tuple[str, ...]
) -> None:
    report = baseline(DatasetSource(mixed), "bm25", queries=2, environ=ENVIRON, now=NOW).comparison
    found = Baseline(report, 0.5, 0.5, ratio, interval)
    assert (found.decision, found.possible) == (decision, possible)
    assert ("do not decide between" in found.sentence) == (len(possible) > 1)
    assert (PAUSE, PROCEED) == (0.80, 0.50)


@pytest.mark.requirement("E4.ratio")
def test_a_pipeline_is_compared_with_words_alone(mixed: Path) -> None:
    found = baseline(DatasetSource(mixed), "vector", environ=ENVIRON, now=NOW)
    assert [pipeline["name"] for pipeline in found.comparison.pipelines] == ["bm25", "vector"]
    assert found.ratio == pytest.approx(found.bm25 / found.pipeline)
    assert found.bm25 == pytest.approx(found.comparison.values["bm25"]["MRR@5"].mean())
    assert found.comparison.kind == "baseline"


def corpus(folder: Path) -> Path:
    """Two constitutional rules, two notes of an hour ago, two old ones; one query for each."""
    import json

    made = [("rule", "constitutional", 90 * DAY), ("fresh", "normal", 3600.0), ("old", "normal", 90 * DAY)]
    names = [(f"{kind}-{word}", kind, tier, age, word) for kind, tier, age in made for word in ("quokka", "zeppelin")]
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(
        "".join(
            json.dumps({"_id": key, "title": key, "text": f"{kind}ish {word}{kind} {'common' * (kind == 'rule')}",
                        "metadata": {"tier": tier, "created_at": NOW - age}}) + "\n"
            for key, kind, tier, age, word in names
        )
    )  # fmt: skip
    (folder / "queries.jsonl").write_text(
        "".join(
            json.dumps({"_id": f"q-{key}", "text": f"{word}{kind} common"}) + "\n" for key, kind, _, _, word in names
        )
    )
    rows = "".join(f"q-{key}\t{key}\t1\n" for key, *_ in names)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    return folder


@pytest.mark.requirement("E8.absolute")
def test_good_enough_is_judged_by_three_criteria_where_there_is_something_to_judge_by(tmp_path: Path) -> None:
    found = good_enough(DatasetSource(corpus(tmp_path / "tiny")), "bm25", environ=ENVIRON, now=NOW)
    assert [(one.name, one.least, one.queries) for one in found.criteria] == [
        ("MRR@5", 0.70, 6), ("constitutional surfacing", 0.95, 6), ("cold start", 0.90, 2)
    ]  # fmt: skip
    assert [one.word for one in found.criteria] == ["go", "go", "go"]
    assert (found.verdict, found.status, found.sentence) == ("go", 0, "bm25 is good enough")


@pytest.mark.requirement("E8.absolute")
def test_where_all_memories_are_new_a_cold_start_cannot_be_told_yet(tmp_path: Path) -> None:
    folder = corpus(tmp_path / "tiny")
    lines = (folder / "corpus.jsonl").read_text().replace(str(NOW - 90 * DAY), str(NOW - 60.0))
    (folder / "corpus.jsonl").write_text(lines)
    found = good_enough(DatasetSource(folder), "bm25", environ=ENVIRON, now=NOW)
    assert [one.word for one in found.criteria] == ["go", "go", "not yet"]
    assert (found.verdict, found.status) == ("unknown", 3)
    assert found.sentence == (
        "whether bm25 is good enough cannot be decided yet; cold start cannot be measured yet: all 6 queries ask for "
        "memories of the last two days; some must ask for older ones, so that new ones compete with them"
    )
    assert markdown(found.as_report()).startswith("### Retrieval gate cannot be decided yet\n")
    blind = {"pipeline": "blind", "extends": "bm25",
             "candidates": {"channels": [{"use": "bm25", "limit": 100, "fields": {"body": 0}}]}}  # fmt: skip
    missed = good_enough(DatasetSource(folder), blind, environ=ENVIRON, now=NOW)
    assert (missed.verdict, missed.status) == ("no-go", 1)
    assert missed.sentence.startswith("blind misses MRR@5, constitutional surfacing; cold start cannot be measured yet")


@pytest.mark.requirement("E8.absolute")
def test_what_is_missed_is_a_no_go_and_what_nothing_tells_is_not_counted(tmp_path: Path, mixed: Path) -> None:
    blind = {"pipeline": "blind", "extends": "bm25",
             "candidates": {"channels": [{"use": "bm25", "limit": 100, "fields": {"body": 0}}]}}  # fmt: skip
    found = good_enough(DatasetSource(corpus(tmp_path / "tiny")), blind, environ=ENVIRON, now=NOW)
    assert [one.word for one in found.criteria] == ["no-go", "no-go", "no-go"]
    assert (found.verdict, found.status) == ("no-go", 1)
    assert found.sentence == "blind misses MRR@5, constitutional surfacing, cold start"
    plain = good_enough(DatasetSource(mixed), "bm25", environ=ENVIRON, now=NOW)
    assert [(one.word, one.queries) for one in plain.criteria[1:]] == [("n/a", 0), ("n/a", 0)]
    assert plain.sentence.endswith("these queries cannot measure constitutional surfacing, cold start")


@pytest.mark.requirement("E4.ratio", "E8.absolute")
def test_rules_that_answer_nothing_sway_no_verdict(tmp_path: Path) -> None:
    folder = corpus(tmp_path / "tiny")
    judged = [line for line in (folder / "qrels" / "test.tsv").read_text().splitlines() if "q-rule" not in line]
    useless = [f"q-{kind}-{word}\trule-{word}\t0" for kind in ("fresh", "old") for word in ("quokka", "zeppelin")]
    (folder / "qrels" / "test.tsv").write_text("\n".join([*judged, *useless, ""]))
    found = good_enough(DatasetSource(folder), "default", environ=ENVIRON, now=NOW)
    assert [one.word for one in found.criteria] == ["go", "go", "go"]
    assert baseline(DatasetSource(folder), "default", environ=ENVIRON, now=NOW).ratio == 1.0
