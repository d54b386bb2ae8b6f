"""`eval judge` through the installed command: at a terminal, by programs that do and do not judge, and kept."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import apsw
import judged_sets
import pytest

from speckit_memory.evaluation.datasets.trec import read_qrels
from speckit_memory.evaluation.experiments.flag_evidence import StoredFigures
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
    judged_sets.titles(tmp_path / "texts", by_mention=32)
    lines = (tmp_path / "texts" / "qrels" / "test.tsv").read_text().splitlines()
    (tmp_path / "texts" / "qrels" / "test.tsv").write_text("\n".join(lines[:2]) + "\n")
    for name, code in SAYS.items():
        (tmp_path / f"{name}.py").write_text(code)
    return tmp_path


def judge(root: Path, *options: str, keys: str | None = None) -> Ran:
    arguments = ["eval", "judge", "--dataset", "texts", "--pipeline", "bm25", "--pipeline", "vector", *options]
    if keys is None:
        return call(root, arguments, env={"SPECKIT_DB": ""})
    return call(root, arguments, env={"SPECKIT_DB": ""}, stdin=keys.encode())


def listed(root: Path) -> list[tuple[str, str, int]]:
    """The labels of all judgement lists in order: list, judge, grade."""
    connection = apsw.Connection(str(root / ".speckit" / "memory.evaluation.db"), flags=apsw.SQLITE_OPEN_READONLY)
    return [
        (name, by, int(grade))
        for name, by, grade in connection.execute("SELECT list, judge, grade FROM labels ORDER BY at")
    ]


def left(root: Path, name: str, *options: str) -> int:
    """How many pairs are not judged yet in this list."""
    pairs: int = judge(root, "--list", name, *options, "--json", keys="q\n").json["pairs"]
    return pairs


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
    assert {by for _, by, _ in listed(workspace)} == {"oracle"}
    assert found["judged"] <= len(listed(workspace)) < found["judged"] + 4, "those that were asked for at the same time"
    again = judge(workspace, *by("oracle"), "--json")
    assert (again.json["closed"], again.json["judged"]) == (True, 0)
    imported = judge(workspace, *by("oracle"), "--qrels", "out.txt", "--no-keep", "--json")
    assert (imported.json["closed"], imported.json["judged"]) == (True, 0)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("garbage", "is not JSON: 'three"),
        ("beyond", 'it must print {"grade": 0} to {"grade": 3}'),
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
    assert listed(workspace) == [("default", "me", 3), ("default", "me", 2), ("default", "you", 1)]
    assert "'x' is none of 0, 1, 2, 3, s, u, q" in ran.err
    assert ran.err.count("query: ") == 6
    assert "vector" not in ran.err.partition("query: ")[2]
    assert "bm25" not in ran.err.partition("query: ")[2]
    same = judge(workspace, "--no-keep", "--json", "--limit", "1", keys="1\n")
    assert same.json["judged"] == 1
    assert judge(workspace, "--no-keep", "--json", keys="").json["judged"] == 0


@pytest.mark.requirement("E3B.labels")
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_a_judge_that_is_ended_has_lost_no_label(workspace: Path, sent: signal.Signals) -> None:
    (workspace / "slow.py").write_text(
        "import os, time\n"
        "count = len(os.listdir('given')); time.sleep(60 if count >= 7 else 0)\n"
        "open(f'given/{os.getpid()}', 'w').close(); print('{\"grade\": 1}')\n"
    )
    (workspace / "given").mkdir()
    arguments = ["eval", "judge", "--dataset", "texts", "--pipeline", "bm25", "--pipeline", "vector", "--jobs", "1"]
    running = subprocess.Popen(
        [COMMAND, *arguments, *by("slow")], cwd=workspace, env=environment(workspace, SPECKIT_DB=""),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until = time.monotonic() + 60
    while len(list((workspace / "given").iterdir())) < 7 and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.5)
    running.send_signal(sent)
    running.wait(timeout=30)
    assert kept(workspace) == [1] * 7


@pytest.mark.requirement("E3B.labels")
def test_a_label_belongs_to_question_and_text_and_to_a_list(workspace: Path) -> None:
    first = judge(workspace, *by("oracle"), "--limit", "12", "--list", "ours", "--qrels-out", "out.txt", "--json").json
    corpus = workspace / "texts" / "corpus.jsonl"
    documents = [json.loads(line) for line in corpus.read_text().splitlines()]
    documents.append({**documents[0], "_id": "another", "title": "Tax returns", "text": "When they are due."})
    judged = first["labels"][0]
    (changed,) = [one for one in documents if one["_id"] == judged["key"]]
    assert left(workspace, "ours") == first["pairs"] - len(listed(workspace))
    corpus.write_text("".join(json.dumps(one) + "\n" for one in documents))
    grown = left(workspace, "ours")
    changed["text"] += " And more."
    corpus.write_text("".join(json.dumps(one) + "\n" for one in documents))
    edited = left(workspace, "ours")
    assert first["pairs"] > edited > grown, "the labels of the text that was changed hold no longer"
    theirs = left(workspace, "theirs")
    assert theirs > edited
    assert left(workspace, "theirs", "--qrels", "out.txt") < theirs
    assert left(workspace, "theirs") < theirs, "what was read from a file has joined the list"
    assert {(name, by) for name, by, _ in listed(workspace) if name == "theirs"} == {("theirs", "out.txt")}


@pytest.mark.requirement("E3B.labels")
@pytest.mark.parametrize(("jobs", "together"), [("1", False), ("4", True)])
def test_programs_judge_several_pairs_at_once_and_say_the_same(workspace: Path, jobs: str, together: bool) -> None:
    (workspace / "busy").mkdir()
    (workspace / "counts.py").write_text(
        "import os, time\n"
        "name = f'busy/{os.getpid()}'; open(name, 'w').close(); time.sleep(0.4)\n"
        "print(len(os.listdir('busy')), file=open('seen', 'a')); os.remove(name); " + SAYS["oracle"].replace("\n", "; ")
    )
    found = judge(workspace, *by("counts"), "--jobs", jobs, "--limit", "8", "--json").json
    assert (max(map(int, (workspace / "seen").read_text().split())) > 1) is together
    plain = judge(workspace, *by("oracle"), "--jobs", "1", "--no-keep", "--list", "none", "--limit", "8", "--json").json
    assert found["labels"] == plain["labels"]


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


@pytest.mark.requirement("E3B.preference")
def test_a_person_prefers_one_of_two_answers_blindly_until_there_is_a_verdict(workspace: Path) -> None:
    """Whoever always prefers the answer of bm25 says so within a few queries, wherever it is shown."""
    first = judge(workspace, "--preference", "--json", keys="a\nu\nb\nq\n")
    assert (first.json["judged"], first.json["neither"]) == (1, 0)
    assert len(listed(workspace)) == 1, "what was taken back is kept no longer"
    assert "bm25" not in first.err
    assert "vector" not in first.err
    shown = judge(workspace, "--preference", "--no-keep", "--json", keys="s\n" * 99)
    screens = shown.err.split("query: ")[1:]
    assert len(screens) == shown.json["pairs"] > 10
    keys = [preferred(screen) for screen in screens]
    assert {"a", "b"} <= set(keys), "the answer of bm25 is now the first one, now the second"
    said = judge(workspace, "--preference", "--list", "mine", "--json", keys="\n".join(keys) + "\n").json
    assert (said["verdict"], said["variant"]) == ("worse", 0)
    assert said["judged"] < said["pairs"], "a verdict ends it"
    again = judge(workspace, "--preference", "--list", "mine", "--json", keys="").json
    assert (again["judged"], again["pairs"]) == (said["judged"], said["pairs"] - said["judged"])
    with EvaluationDatabase.open(workspace / ".speckit" / "memory.evaluation.db", create=False) as database:
        stored = database.evaluation(said["id"])
    assert stored is not None
    figure = StoredFigures(stored, 1).difference("interleaving")
    assert figure is not None
    assert (figure.value < 0, figure.p is not None and figure.p < 0.05) == (True, True)
    refused = judge(workspace, "--preference", *by("oracle")).ended(2)
    assert "--preference needs a person and has no grades" in refused.err


def preferred(screen: str) -> str:
    """The shorter answer: bm25 finds the two documents that hold the query, and nothing else."""
    first, second = (answer.count("\n  ") for answer in screen.partition("answer a")[2].split("answer b"))
    return "a" if first < second + 1 else "b"


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
    return [grade for _, _, grade in listed(root)]


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
        _, query, title, *passage = screen.partition("0 not relevant")[0].rstrip("\n").split("\n")
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
    assert "kept, so that the next session continues there" in " ".join(shown.text.split())
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
    interpreter = Path(sys.executable).name
    said = [by for _, by, _ in listed(workspace)]
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
