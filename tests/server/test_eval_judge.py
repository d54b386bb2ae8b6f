"""`eval judge` through the installed command: at a terminal, by programs that do and do not judge, and kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import judged_sets
import pytest

from speckit_memory.evaluation.trec_reading import read_qrels
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from tests.server.doors import COMMAND, Ran, call, environment
from tests.server.terminals import Shown, typed

pytestmark = pytest.mark.usefixtures("processes")

SAYS = {
    "oracle": (
        "import json, sys; asked = json.load(sys.stdin)\n"
        "print(json.dumps({'grade': 3 * (asked['query'] in asked['document']['text'])}))"
    ),
    "garbage": "print('three')",
    "beyond": "print('{\"grade\": 4}')",
    "crash": "import sys; sys.exit('no key')",
    "hang": "import time; time.sleep(60)",
    "skip": "print('{\"skip\": true}')",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace beside a dataset whose queries are answered by mentions, of which only the first is judged."""
    (tmp_path / ".speckit").mkdir()
    judged_sets.titles(tmp_path / "texts", by_mention=16)
    lines = (tmp_path / "texts" / "qrels" / "test.tsv").read_text().splitlines()
    (tmp_path / "texts" / "qrels" / "test.tsv").write_text("\n".join(lines[:2]) + "\n")
    for name, code in SAYS.items():
        (tmp_path / f"{name}.py").write_text(code)
    return tmp_path


def judge(root: Path, *options: str, keys: str | None = None) -> Ran:
    arguments = ["eval", "judge", "--dataset", "texts", "--pipeline", "bm25", "--pipeline", "vector", *options]
    if keys is None:
        return call(root, arguments, env={"SPECKIT_DB": ""})
    done = subprocess.run(
        [COMMAND, *arguments], input=keys, capture_output=True, text=True, check=False, cwd=root, timeout=120,
        env=environment(root, SPECKIT_DB=""),
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr)


def by(name: str) -> list[str]:
    return ["--command", f"{sys.executable} {name}.py"]


@pytest.mark.requirement("E3B.judge")
def test_a_program_labels_until_no_label_can_change_the_verdict(workspace: Path) -> None:
    found = judge(workspace, *by("oracle"), "--qrels-out", "out.txt", "--by", "oracle", "--json").ok().json
    assert (found["closed"], found["verdict"], found["by"]) == (True, "worse", "oracle")
    assert 0 < found["judged"] < found["pairs"]
    said = read_qrels(workspace / "out.txt")
    for label in found["labels"]:
        assert said[label["query"]][label["key"]] == label["grade"]
    with EvaluationDatabase.open(workspace / ".speckit" / "memory.evaluation.db", create=False) as database:
        (kept,) = database.evaluations()
    assert kept.kind == "judgements"
    assert {(one["query"], one["key"], one["grade"], one["by"]) for one in kept.document["judgements"]} == {
        (label["query"], label["key"], label["grade"], "oracle") for label in found["labels"]
    }
    again = judge(workspace, *by("oracle"), "--json")
    assert (again.json["closed"], again.json["judged"]) == (True, 0)
    imported = judge(workspace, *by("oracle"), "--qrels", "out.txt", "--no-keep", "--json")
    assert (imported.json["closed"], imported.json["judged"]) == (True, 0)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("garbage", "is not JSON: 'three"),
        ("beyond", 'it must say {"grade": 0} to {"grade": 3}'),
        ("crash", "it ended with status 1: no key"),
        ("hang", "it gave no answer within 0.5 s"),
    ],
)
def test_a_program_that_does_not_judge_is_given_up_after_three_times(workspace: Path, name: str, why: str) -> None:
    ran = judge(workspace, *by(name), "--timeout", "0.5", "--json")
    assert (ran.status, ran.json["error"]["code"]) == (2 if ran.status == 2 else 1, "E126")
    assert ran.status == 1
    assert "failed 3 times in a row" in ran.json["error"]["message"]
    assert why in ran.json["error"]["message"]


def test_a_program_that_is_not_there_and_one_that_skips_all(workspace: Path) -> None:
    judge(workspace, "--command", "no-such-program", "--json").refused("E030")
    skipped = judge(workspace, *by("skip"), "--limit", "4", "--no-keep", "--json")
    assert (skipped.status, skipped.json["judged"], skipped.json["failures"]) == (0, 0, [])


@pytest.mark.requirement("E3B.judge")
def test_a_person_grades_skips_takes_back_and_quits_and_does_not_see_who_brought_what(workspace: Path) -> None:
    ran = judge(workspace, "--by", "me", "--json", keys="3\nx\n0\nu\n2\ns\nq\n").ok()
    assert [label["grade"] for label in ran.json["labels"]] == [3, 2]
    judge(workspace, "--by", "you", "--limit", "1", keys="1\n")
    with EvaluationDatabase.open(workspace / ".speckit" / "memory.evaluation.db", create=False) as database:
        *_, latest = database.evaluations()
    assert [one["by"] for one in latest.document["judgements"]] == ["me", "me", "you"]
    assert "'x' is none of 0, 1, 2, 3, s, u, q" in ran.err
    assert ran.err.count("query: ") == 6
    assert "vector" not in ran.err.partition("query: ")[2]
    assert "bm25" not in ran.err.partition("query: ")[2]
    same = judge(workspace, "--no-keep", "--json", "--limit", "1", keys="1\n")
    assert same.json["judged"] == 1
    assert judge(workspace, "--no-keep", "--json", keys="").json["judged"] == 0


def test_the_pairs_come_in_the_same_order_each_time(workspace: Path) -> None:
    labels = [judge(workspace, *by("oracle"), "--no-keep", "--limit", "5", "--json").json["labels"] for _ in range(2)]
    assert labels[0] == labels[1]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["eval", "judge"], 2),
        (["eval", "judge", "--dataset", "texts", "--experiment", "0123456789ab"], 2),
        (["eval", "judge", "--dataset", "texts", "--pipeline", "bm25"], 2),
        (["eval", "judge", "--experiment", "0123456789ab"], 2),
        (["eval", "judge", "--experiment", "0123456789ab", "--pipeline", "nosuch.yaml"], 2),
    ],
)
def test_what_cannot_be_judged_is_refused(workspace: Path, options: list[str], status: int) -> None:
    assert call(workspace, options, env={"SPECKIT_DB": ""}).status == status


def test_labels_are_json_a_script_can_read(workspace: Path) -> None:
    ran = judge(workspace, *by("oracle"), "--no-keep", "--limit", "2")
    assert "2 pairs judged by" in ran.out
    assert json.loads(judge(workspace, *by("oracle"), "--no-keep", "--limit", "2", "--json").out)["judged"] == 2


PROMPT = b"q quit: "
AT_TERMINAL = ["eval", "judge", "--dataset", "texts", "--pipeline", "bm25", "--pipeline", "vector", "--by", "me"]


def sit(root: Path, *keys: bytes, options: tuple[str, ...] = ()) -> Shown:
    return typed(root, [*AT_TERMINAL, *options], keys, PROMPT)


def kept(root: Path) -> list[int]:
    """The grades that are kept, in order."""
    with EvaluationDatabase.open(root / ".speckit" / "memory.evaluation.db") as database:
        return [one["grade"] for stored in database.evaluations() for one in stored.document["judgements"]]


@pytest.mark.requirement("E3B.judge")
def test_at_a_terminal_one_pair_at_a_time_is_short_and_says_how_far_it_is(workspace: Path) -> None:
    corpus = workspace / "texts" / "corpus.jsonl"
    documents = [json.loads(line) for line in corpus.read_text().splitlines()]
    for document in documents:
        document["text"] = f"{'A line of no use.' + chr(10)}" * 60 + document["text"] + f"{chr(10)}Further below." * 60
    corpus.write_text("".join(json.dumps(document) + "\n" for document in documents))

    shown = sit(workspace, b"3\n", b"9\n", b"0\n", *[b"s\n"] * 20, b"q\n")

    assert shown.status == 0
    screens = "\n".join(shown.lines).split("verdict open")
    heads = [screen.rsplit("\n", 1)[-1].strip() for screen in screens[:-1]]
    assert [head.split(" of ")[0] for head in heads] == [str(number) for number in range(1, 24)]
    for screen in screens[1:]:
        _, query, title, *passage = screen.partition("0 of no use")[0].rstrip("\n").split("\n")
        assert query.startswith("  query: ")
        assert title.strip()
        assert 1 < len(passage) <= 12
    middle = next(screen for screen in screens if "lines above" in screen)
    asked = middle.partition("query: ")[2].split("\n")[0].split()[0]
    assert asked in middle.partition("lines above")[2], "the lines that hold the words of the query are shown"
    assert "'9' is none of 0, 1, 2, 3, s, u, q" in shown.text
    assert shown.widest <= 80
    assert "2 pairs judged by me" in shown.text
    assert kept(workspace) == [3, 0]


@pytest.mark.parametrize(("end", "status"), [(b"\x04", 0), (b"\x03", 130)])
def test_the_end_of_the_input_and_an_interruption_keep_what_was_judged(
    workspace: Path, end: bytes, status: int
) -> None:
    shown = sit(workspace, b"2\n", b"1\n", end)

    assert shown.status == status
    assert "2 pairs judged by me" in shown.text
    assert "kept, so that the next sitting goes on there" in " ".join(shown.text.split())
    assert kept(workspace) == [2, 1]
    again = sit(workspace, b"q\n")
    assert again.status == 0
    assert (
        int(again.text.split("verdict open")[0].split(" of ")[-1].split(" ")[0].replace(",", ""))
        == int(shown.text.split("verdict open")[0].split(" of ")[-1].split(" ")[0].replace(",", "")) - 2
    )


def test_after_five_labels_the_verdict_so_far_is_told(workspace: Path) -> None:
    shown = sit(workspace, *[b"3\n"] * 5, b"q\n", options=("--limit", "9"))

    assert "stops after 9" in shown.text
    assert "4 labels so far" in shown.text
    assert "verdict open, so far undecided" in " ".join(shown.lines)


def test_two_programs_of_one_interpreter_are_two_judges(workspace: Path) -> None:
    (workspace / "programs").mkdir()
    for name in ("one", "other"):
        (workspace / "programs" / f"{name}.py").write_text("print('{\"grade\": 1}')")
        judge(workspace, "--command", f"{sys.executable} programs/{name}.py --strict", "--limit", "1")
    with EvaluationDatabase.open(workspace / ".speckit" / "memory.evaluation.db", create=False) as database:
        *_, latest = database.evaluations()
    interpreter = Path(sys.executable).name
    said = [one["by"] for one in latest.document["judgements"]]
    assert said == [f"{interpreter} one.py --strict", f"{interpreter} other.py --strict"]


def test_an_experiment_takes_no_pipeline_and_says_so(workspace: Path) -> None:
    arguments = ["eval", "judge", "--experiment", "0123456789ab", "--pipeline", "nosuch.yaml", "--json"]
    error = call(workspace, arguments, env={"SPECKIT_DB": ""}).json["error"]
    assert (error["code"], error["message"].split(":")[0]) == ("E200", "--experiment takes no --pipeline")


def test_what_other_commands_measure_on_is_answered_with_what_this_one_takes(workspace: Path) -> None:
    ran = call(workspace, ["eval", "judge", "--from-use"], env={"SPECKIT_DB": ""}).ended(2)
    assert "No such option '--from-use'; judge takes --experiment or --dataset or --own." in ran.err
    assert "Did you mean" not in ran.err


def test_the_dataset_that_ships_is_judged_by_its_name(workspace: Path) -> None:
    two = ["--pipeline", "bm25", "--pipeline", "rsf"]
    ran = call(workspace, ["eval", "judge", "--dataset", "bundled", *two, "--json", *by("oracle"), "--limit", "1"]).ok()
    assert ran.json["judged"] == 1


def test_a_pipe_gets_the_words_of_a_long_line_whole(workspace: Path) -> None:
    corpus = workspace / "texts" / "corpus.jsonl"
    documents = [json.loads(line) for line in corpus.read_text().splitlines()]
    for document in documents:
        document["text"] += " " + "unbreakable " * 40
    corpus.write_text("".join(json.dumps(document) + "\n" for document in documents))
    shown = judge(workspace, "--no-keep", keys="q\n").err
    lines = [line for line in shown.splitlines() if "unbreakable" in line]
    assert len(lines) > 3
    assert max(len(line) for line in lines) <= 120
    assert {word for line in lines for word in line.split() if word.startswith("unb")} == {"unbreakable"}
    assert shown.count("unbreakable") == 40
