from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.evaluation.made_queries.kinds import KINDS
from tests.server.doors import call

FILES = {"corpus.jsonl", "queries.jsonl", "qrels/test.tsv"}
TOPICS = {
    "lighthouse": "The lighthouse keeper wrote to Ada Lovelace about the copper lantern in `lamp_room`.",
    "harbour": "A harbour pilot steers every vessel by the northern channel.",
    "shipwreck": "Divers found the shipwreck below the granite cliffs near Saint Malo.",
}


def files(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def lines(path: Path) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    corpus = [{"_id": key, "title": f"About the {key}", "text": text} for key, text in TOPICS.items()]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in corpus))
    return folder


def add_queries(dataset: Path, folders: list[str]) -> None:
    corpus = lines(dataset / "corpus.jsonl")
    placed = [{**record, "metadata": {"folder": f"f{n % 2}"}} for n, record in enumerate(corpus)]
    (dataset / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in placed))
    asked = [{"_id": f"q{n}", "text": "x", "metadata": {"folder": name}} for n, name in enumerate(folders)]
    (dataset / "queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in asked))


@pytest.mark.requirement("E3")
def test_what_is_made_can_be_measured_at_once(dataset: Path, tmp_path: Path) -> None:
    (dataset / "edges.tsv").write_text("source\trelation\ttarget\tstrength\nharbour\tenabled\tshipwreck\t0.5\n")
    call(tmp_path, ["eval", "make-queries", "--dataset", dataset, "--out", "out", "--kind", "words"]).ok()
    assert {*files(tmp_path / "out")} == {*FILES, "edges.tsv"}
    assert files(tmp_path / "out")["corpus.jsonl"] == files(dataset)["corpus.jsonl"]

    ran = call(tmp_path, ["eval", "run", "--dataset", "out", "--pipeline", "bm25", "--json"]).ok()
    assert ran.json["queries"] == len(lines(tmp_path / "out" / "queries.jsonl")) > 10
    assert ran.json["pipelines"][0]["metrics"]["Hit@1"] == 1.0


def test_each_of_several_kinds_has_a_folder_and_the_report_says_why_some_are_few(dataset: Path, tmp_path: Path) -> None:
    ran = call(
        tmp_path, ["eval", "make-queries", "--dataset", dataset, "--out", "out", "--queries", "4", "--json"]
    ).ok()
    kinds = {made["kind"]: made for made in ran.json["kinds"]}
    assert tuple(kinds) == tuple(KINDS)
    assert (ran.json["documents"], ran.json["asked"], ran.json["scope"], ran.json["seed"]) == (3, 4, "corpus", 20)
    assert kinds["words"] == {"kind": "words", "queries": 4, "folder": "out/words", "reason": ""}
    assert (kinds["paragraphs"]["queries"], kinds["paragraphs"]["folder"]) == (0, None)
    assert "no further document with more than 80 words" in kinds["paragraphs"]["reason"]
    assert (kinds["titles"]["queries"], kinds["titles"]["reason"][:19]) == (0, "there is no further")
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {name for name, made in kinds.items() if made["queries"]}
    for name in written:
        assert len(lines(tmp_path / "out" / name / "queries.jsonl")) == kinds[name]["queries"]


def test_the_report_for_a_reader_counts_and_explains(dataset: Path, tmp_path: Path) -> None:
    kinds = ["--kind", "words", "--kind", "paragraphs"]
    ran = call(tmp_path, ["eval", "make-queries", "--dataset", dataset, "--out", "out", "--queries", "2", *kinds])
    assert ran.out.splitlines() == [
        "notes: 3 documents, seed 20",
        "",
        "words       2 of 2 queries  out/words",
        "paragraphs  0 of 2 queries             there is no further document with more than 80 words that no other "
        "document has",
        "-v shows more",
    ]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(dataset: Path, tmp_path: Path) -> None:
    for out, seed in (("one", "3"), ("two", "3"), ("three", "4")):
        arguments: list[str | Path] = [
            "eval",
            "make-queries",
            "--dataset",
            dataset,
            "--out",
            out,
            "--seed",
            seed,
            "--queries",
            "5",
        ]
        assert call(tmp_path, arguments, env={"PYTHONHASHSEED": str(len(out))}).status == 0
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert files(tmp_path / "one") != files(tmp_path / "three")


def test_no_query_at_all_is_a_failure_that_says_why(dataset: Path, tmp_path: Path) -> None:
    arguments: list[str | Path] = [
        "eval",
        "make-queries",
        "--dataset",
        dataset,
        "--out",
        "out",
        "--kind",
        "paragraphs",
        "--json",
    ]
    error = call(tmp_path, arguments).refused("E125", 1)
    assert "no further document with more than 80 words" in error["message"]
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_is_overwritten_by_force_alone(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "words").mkdir(parents=True)
    (out / "paragraphs").mkdir()
    for kind in ("words", "paragraphs"):
        (out / kind / "edges.tsv").write_text("of another dataset")
        (out / kind / "notes.txt").write_text("mine")
    arguments: list[str | Path] = [
        "eval",
        "make-queries",
        "--dataset",
        dataset,
        "--out",
        out,
        "--kind",
        "words",
        "--kind",
        "paragraphs",
    ]
    before = files(out)

    refused = call(tmp_path, [*arguments, "--json"]).ended(2)
    assert [problem["code"] for problem in refused.json["errors"]] == ["E014", "E014"]
    assert "is not empty" in refused.json["error"]["message"]
    assert files(out) == before

    assert call(tmp_path, [*arguments, "--force"]).status == 0
    assert {*files(out / "words")} == {*FILES, "notes.txt"}
    assert {*files(out / "paragraphs")} == {"notes.txt"}


@pytest.mark.parametrize(("out", "message"), [("notes", "is the dataset itself"), ("a.txt", "is a file")])
def test_neither_the_dataset_nor_a_file_is_overwritten(dataset: Path, tmp_path: Path, out: str, message: str) -> None:
    (tmp_path / "a.txt").write_text("mine")
    before = files(tmp_path)
    ran = call(
        tmp_path, ["eval", "make-queries", "--dataset", dataset, "--out", out, "--kind", "words", "--force"]
    ).ended(2)
    assert message in ran.err
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("asked_in", "scope", "expected"),
    [
        (["f0", "f1"], "auto", {"f0", "f1"}),
        (["f0", ""], "auto", {None}),
        ([""], "folder", {"f0", "f1"}),
        (["f0", "f1"], "corpus", {None}),
    ],
)
def test_queries_search_within_folders_when_the_datasets_own_do(
    dataset: Path, tmp_path: Path, asked_in: list[str], scope: str, expected: set[str | None]
) -> None:
    add_queries(dataset, asked_in)
    ran = call(
        tmp_path, ["eval", "make-queries", "--dataset", dataset, "--out", "out", "--kind", "words", "--scope", scope]
    ).ok()
    assert ("each query within one folder" in ran.out) == (None not in expected)
    assert {query["metadata"].get("folder") for query in lines(tmp_path / "out" / "queries.jsonl")} == expected


def test_every_malformed_line_of_the_dataset_is_reported(dataset: Path, tmp_path: Path) -> None:
    with (dataset / "corpus.jsonl").open("a") as file:
        file.write('{"title": "no id"}\n{oops\n')
    ran = call(tmp_path, ["eval", "make-queries", "--dataset", dataset, "--out", "out", "--kind", "words", "--json"])
    assert (ran.status, [problem["where"]["line"] for problem in ran.json["errors"]]) == (2, [4, 5])
    error = call(tmp_path, ["eval", "make-queries", "--dataset", "nowhere", "--out", "out", "--json"]).refused("E123")
    assert error["message"] == (
        "'nowhere' has no file corpus.jsonl and no folder docs of Markdown files; the documents are needed"
    )
