from __future__ import annotations

from pathlib import Path

import pytest
from files import write_file
from judged_sets import PIPELINE, titles, write

from tests.server.doors import call

TITLE = "bm25.single.title"


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    return write_file(tmp_path / "words.yaml", PIPELINE)


def tune(root: Path, pipeline: Path, *more: str | Path) -> list[str | Path]:
    return ["pipeline", "tune", pipeline, "--out", root / "tuned.yaml", "--seed", "3", *more]


def test_a_planted_optimum_is_found_and_written_to_a_file_that_keeps_it(pipeline: Path, tmp_path: Path) -> None:
    dataset = titles(tmp_path / "mixed", by_title=10, by_text=10)
    ran = call(tmp_path, tune(tmp_path, pipeline, "--dataset", dataset, "--parameter", TITLE, "--json")).ok()
    (found,) = ran.json["parameters"]
    assert (found["name"], found["range"], found["start"], found["idle"]) == (TITLE, [0.0, 2.0], 0.0, False)
    assert 0.9 < found["tuned"] < 1.7
    overall = ran.json["held_out"]["overall"]
    assert (overall["queries"], overall["start"]["nDCG@10"], overall["tuned"]["nDCG@10"]) == (20, 0.5, 1.0)
    assert (overall["comparisons"][0]["verdict"], ran.json["accepted"], ran.json["left_out"]) == ("better", True, [])

    file = tmp_path / "tuned.yaml"
    text = file.read_text()
    assert f"# single.title: 0 -> {found['tuned']:g} (by fold: " in text
    assert "#   speckit-memory pipeline tune " in text
    assert call(tmp_path, ["pipeline", "check", file]).status == 0
    again = call(tmp_path, ["eval", "run", "--dataset", dataset, "--pipeline", file, "--json"]).json
    assert (again["pipelines"][0]["name"], again["pipelines"][0]["metrics"]["nDCG@10"]) == ("tuned", 1.0)


def test_what_was_tuned_is_not_tuned_again_and_comments_stay(pipeline: Path, tmp_path: Path) -> None:
    pipeline.write_text(PIPELINE.replace("  recover: []", "    # no other channel\n  recover: []"))
    dataset = titles(tmp_path / "mixed", by_title=10, by_text=10)
    assert call(tmp_path, tune(tmp_path, pipeline, "--dataset", dataset, "--parameter", TITLE)).status == 0
    first = tmp_path / "tuned.yaml"
    arguments: list[str | Path] = ["pipeline", "tune", first, "--out", tmp_path / "again.yaml", "--dataset", dataset]
    again = call(tmp_path, [*arguments, "--parameter", TITLE, "--json"]).json
    assert again["accepted"] is False
    assert [p["name"] for p in again["parameters"] if p["tuned"] != p["start"]] == []
    assert call(tmp_path, ["pipeline", "diff", first, tmp_path / "again.yaml", "--json"]).json["same"]
    for text in (first.read_text(), (tmp_path / "again.yaml").read_text()):
        assert "    # no other channel\n  recover: []" in text
        moved = [line for line in text.splitlines() if " -> " in line]
        assert [line.split(":")[0].strip() for line in moved] == ["# single.title"]


def test_the_same_seed_finds_the_same(pipeline: Path, tmp_path: Path) -> None:
    dataset = titles(tmp_path / "mixed", by_title=6, by_text=6)
    arguments = tune(tmp_path, pipeline, "--dataset", dataset, "--trials", "8", "--folds", "2", "--json")
    first, second = (call(tmp_path, arguments) for _ in range(2))
    assert first.status == 0
    assert first.out == second.out


def test_what_makes_any_dataset_significantly_worse_is_not_taken(pipeline: Path, tmp_path: Path) -> None:
    # counting titles more would gain twice as much in the first set as it would lose in the second
    pipeline.write_text(PIPELINE.replace("single: {title: 0}", "single: {title: 0.5}"))
    gaining = titles(tmp_path / "gaining", by_title=40)
    losing = titles(tmp_path / "losing", by_mention=40, by_text=40)
    ran = call(
        tmp_path, tune(tmp_path, pipeline, "--dataset", gaining, "--dataset", losing, "--parameter", TITLE, "--json")
    ).ok()
    assert (ran.json["parameters"][0]["tuned"], ran.json["accepted"]) == (0.5, False)
    assert ran.json["verdict"].startswith("kept the start: ")
    worse = {entry["dataset"]: entry["comparisons"][0]["verdict"] for entry in ran.json["left_out"]}
    assert worse == {"gaining": "undecided", "losing": "worse"}
    same = call(tmp_path, ["pipeline", "diff", pipeline, tmp_path / "tuned.yaml", "--json"]).json["same"]
    assert same


def test_a_parameter_without_effect_is_said_to_have_none(pipeline: Path, tmp_path: Path) -> None:
    dataset = titles(tmp_path / "mixed", by_title=4, by_text=4)
    ran = call(
        tmp_path, tune(tmp_path, pipeline, "--dataset", dataset, "--parameter", "bm25.limit", "--folds", "2")
    ).ok()
    rows = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "bm25.limit 20 to 200 50 no effect 50 50" in rows
    assert rows[-2] == f"written: {tmp_path / 'tuned.yaml'}"


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["--parameter", "bm25.titel"], "E033", "'bm25.titel' is not a tunable parameter of this pipeline"),
        (["--parameter", "bm25.level"], "E033", "'bm25.level' is not a tunable parameter of this pipeline"),
        (["--folds", "9"], "E032", "'mixed' has 8 judged queries, too few for 9 folds"),
        (["--dataset", "mixed"], "E030", "two datasets are named 'mixed'"),
        (["--dataset", "nowhere"], "E123", "'nowhere' has no file corpus.jsonl"),
        (["--out", "nowhere/tuned.yaml"], "E014", "the folder 'nowhere' does not exist"),
        (["--out", "mixed"], "E014", "'mixed' is a folder"),
    ],
)
def test_what_cannot_be_tuned_is_refused(
    more: list[str], code: str, message: str, pipeline: Path, tmp_path: Path
) -> None:
    titles(tmp_path / "mixed", by_title=4, by_text=4)
    error = call(tmp_path, tune(tmp_path, pipeline, "--dataset", "mixed", *more, "--json")).refused(code)
    assert message in error["message"]
    assert not (tmp_path / "tuned.yaml").exists()


ABSTAINING = PIPELINE.replace("annotate: []", "annotate: [{use: evidence_gap}]")


def questions(folder: Path, subject: str, count: int = 40) -> Path:
    """Every question has two words of its one answer and, in one case of ten, three words that stand nowhere."""
    documents = [(f"d{n}", f"{subject} {n}", f"the {subject}{n}a and the {subject}{n}b of it") for n in range(count)]
    missing = [f" {subject}x{n} {subject}y{n} {subject}z{n}" if n % 10 == 0 else "" for n in range(count)]
    judged = [(f"{subject}{n}a {subject}{n}b{missing[n]}", f"d{n}") for n in range(count)]
    return write(folder, documents, judged)


@pytest.mark.requirement("A4")
@pytest.mark.usefixtures("exhaustive")
def test_a_calibrated_threshold_keeps_the_stated_rate_and_finds_foreign_questions(tmp_path: Path) -> None:
    pipeline = write_file(tmp_path / "abstaining.yaml", ABSTAINING)
    sets = [questions(tmp_path / subject, subject) for subject in ("owl", "elm")]
    out = tmp_path / "calibrated.yaml"
    arguments: list[str | Path] = [
        "pipeline",
        "calibrate",
        pipeline,
        "--dataset",
        sets[0],
        "--dataset",
        sets[1],
        "--out",
        out,
    ]
    ran = call(tmp_path, [*arguments, "--false-alarms", "0.2", "--json"]).ok()
    overall = ran.json["held_out"]["overall"]
    assert overall["answerable"]["share"] <= 0.2
    assert (overall["foreign"]["share"], overall["removed"]["share"]) == (1.0, 1.0)
    assert (overall["answerable"]["n"], overall["foreign"]["n"], overall["removed"]["n"]) == (80, 80, 80)
    assert (ran.json["threshold"]["start"], ran.json["before"], len(ran.json["left_out"])) == (None, None, 2)
    text = out.read_text()
    fitted = ran.json["threshold"]["fitted"]
    assert f"{{id: evidence_gap, form: coverage, min_coverage: {fitted}, false_alarm_rate: 0.2}}" in text
    assert f"# min_coverage: another form -> {fitted:g} (by fold: " in text
    assert "#   speckit-memory pipeline calibrate " in text
    assert call(tmp_path, ["pipeline", "check", out]).status == 0
    assert call(tmp_path, [*arguments, "--false-alarms", "0.2", "--json"]).out == ran.out
    tables = call(tmp_path, [*arguments, "--false-alarms", "0.2"]).out
    assert "dataset left out" in tables
    assert tables.splitlines()[-2] == f"written: {out}"


@pytest.mark.parametrize(
    ("text", "more", "code", "message"),
    [
        (PIPELINE, [], "E030", "has no step 'evidence_gap' to calibrate"),
        (ABSTAINING, ["--false-alarms", "0"], "E032", "the false-alarm rate is 0; accepted: between 0 and 1"),
        (ABSTAINING, ["--false-alarms", "1.5"], "E032", "the false-alarm rate is 1.5"),
        (ABSTAINING, ["--false-alarms", "0.01"], "E032", "are too few"),
        (ABSTAINING.replace("evidence_gap", "evidence_gab"), [], "E116", "did you mean 'evidence_gap'?"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(
    text: str, more: list[str], code: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "p.yaml").write_text(text)
    questions(tmp_path / "owl", "owl")
    arguments: list[str | Path] = [
        "pipeline",
        "calibrate",
        "p.yaml",
        "--dataset",
        "owl",
        "--out",
        "calibrated.yaml",
        *more,
        "--json",
    ]
    error = call(tmp_path, arguments).refused(code)
    assert message in error["message"]
    assert not (tmp_path / "calibrated.yaml").exists()
