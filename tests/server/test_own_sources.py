"""Commands that tune and judge a pipeline on one's own memories, and what calibrate writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.server.doors import call

PHRASE = "The {0} cache keeps {1} entries for {2} of the workers that {3} it."


@pytest.fixture
def own(tmp_path: Path) -> Path:
    words = ["alpine", "breton", "cobalt", "dorian", "ember", "fjord", "garnet", "hazel", "indigo", "jasper"]
    for place, word in enumerate(words):
        others = [words[(place + step) % len(words)] for step in (3, 5, 7)]
        text = f"# The {word} {others[0]}\n\n{PHRASE.format(word, *others)}\n"
        (tmp_path / f"{word}.md").write_text(f"{text}\n## How {word} meets {others[1]}\n\nAt noon.\n")
    assert call(tmp_path, ["index", "."]).status == 0
    return tmp_path


@pytest.mark.requirement("E3")
def test_calibrate_on_ones_own_memories_writes_a_file_that_says_the_limit(own: Path) -> None:
    asked = ["pipeline", "calibrate", "--own", "--folds", "2", "--false-alarms", "0.5", "--queries", "8"]
    before = (own / "memory.db").read_bytes()
    ran = call(own, [*asked, "default", "--out", "ours.yaml", "--json"]).ok()
    assert own.name in json.dumps(ran.json["held_out"])
    said = [line for line in (own / "ours.yaml").read_text().splitlines() if line and not line.lstrip().startswith("#")]
    assert said[:4] == ["pipeline: ours", "extends: default", "annotate:", "  change:"]
    assert said[4].startswith("    - {id: evidence_gap, form: coverage, min_coverage: ")
    assert len(said) == 5
    shown = call(own, ["pipeline", "diff", "default", "ours.yaml"]).out
    assert "min_coverage" in shown
    assert call(own, ["pipeline", "check", "ours.yaml"]).status == 0

    (own / "sub").mkdir()
    assert call(own, [*asked, "ours.yaml", "--out", "sub/next.yaml"]).status == 0
    assert 'extends: "../ours.yaml"' in (own / "sub" / "next.yaml").read_text()
    assert (own / "memory.db").read_bytes() == before


@pytest.mark.requirement("E3")
def test_tune_and_ablate_measure_on_ones_own_memories(own: Path) -> None:
    tuned = call(own, ["pipeline", "tune", "bm25", "--own", "--folds", "2", "--trials", "2", "--parameter", "bm25.b",
                       "--out", "tuned.yaml", "--json"])  # fmt: skip
    assert tuned.status == 0, tuned.out
    assert own.name in json.dumps(tuned.json["held_out"])
    ablated = call(own, ["eval", "ablate", "--own", "--pipeline", "bm25", "--queries", "10", "--json"]).ok()
    assert own.name in json.dumps(ablated.json)


@pytest.mark.requirement("E3")
@pytest.mark.usefixtures("processes")
def test_a_judge_labels_queries_made_of_ones_own_memories(own: Path) -> None:
    two = ["--pipeline", "bm25", "--pipeline", "vector"]
    judge = ["eval", "judge", "--own", *two, "--command", "false", "--limit", "1", "--no-keep"]
    judged = call(own, [*judge, "--json"])
    assert judged.json["failures"] == ["it ended with status 1"], judged.out
    refused = call(own, [*judge, "--dataset", "bundled"])
    assert (refused.status, "--dataset or --own" in refused.err) == (2, True)
