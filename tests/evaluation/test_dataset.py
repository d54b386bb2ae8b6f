from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.datasets.dataset import Dataset, DatasetQuery, read
from speckit_memory.evaluation.datasets.documents import DatasetDocument
from speckit_memory.memory.store.records import Tier

Write = Callable[..., Path]


def problems(folder: Path) -> list[str]:
    """file:line:column message of everything wrong, relative to the dataset."""
    with pytest.raises(SpeckitError) as caught:
        read(folder)
    assert {problem.code for problem in caught.value.problems} == {"E123"}
    assert caught.value.exit_status == 2
    return [str(problem).replace(f"{folder}/", "").replace("E123 ", "") for problem in caught.value.problems]


def test_a_dataset_is_read_with_its_metadata_and_edges(write_dataset: Write) -> None:
    folder = write_dataset(edges=[("fusion", "enabled", "decay", "0.5")])
    dataset = read(folder)
    assert dataset == Dataset(
        folder=folder,
        keys=frozenset({"fusion", "decay", "rules", "sqlite"}),
        queries=(
            DatasetQuery("q1", "how are ranked lists of channels merged?", intent="understand"),
            DatasetQuery("q2", "when does a memory decay?"),
            DatasetQuery("q3", "may I push?", folder="rules"),
            DatasetQuery("q4", "what is the airspeed of a swallow?"),
        ),
        judgements={"q1": {"fusion": 2.0}, "q2": {"decay": 1.0}, "q3": {"rules": 1.0}, "q4": {"fusion": 0.0}},
        edges=(("fusion", "enabled", "decay", 0.5),),
    )
    assert dataset.name == "tiny"
    assert list(dataset.corpus())[2] == DatasetDocument(
        key="rules",
        title="House rules",
        text="Never push without running the tests.",
        folder="rules",
        tier=Tier.CONSTITUTIONAL,
        triggers=("push",),
        created_at=1767571200.0,  # 2026-01-05T00:00:00Z
    )


def test_queries_without_a_relevant_document_are_told_apart(write_dataset: Write) -> None:
    dataset = read(write_dataset(qrels=[("q1", "fusion", 1), ("q2", "decay", 0), ("q3", "rules", -1)]))
    assert [query.id for query in dataset.judged()] == ["q1"]


def test_unknown_metadata_nulls_blank_lines_and_a_byte_order_mark_are_no_problem(write_dataset: Write) -> None:
    folder = write_dataset(
        corpus=[
            '\ufeff{"_id": "a", "title": null, "text": "x", "metadata": null}',
            "",
            '{"_id": "b", "metadata": {"n": 1}}',
        ],
        queries=[{"_id": "q", "text": "x", "metadata": {"category": "temporal"}}],
        qrels=[("q", "a", 1)],
    )
    assert [document.key for document in read(folder).corpus()] == ["a", "b"]


@pytest.fixture
def far_from_greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_from_greenwich")
def test_a_moment_may_be_a_number_a_date_or_a_time_with_a_zone(write_dataset: Write) -> None:
    moments = [1.5, "1970-01-02", "1970-01-01T02:00:00+02:00", "1970-01-01T00:00:01Z", None]
    folder = write_dataset(
        corpus=[{"_id": str(n), "text": "x", "metadata": {"created_at": m}} for n, m in enumerate(moments)],
        queries=[{"_id": "q", "text": "x"}],
        qrels=[("q", "0", 1)],
    )
    assert [document.created_at for document in read(folder).corpus()] == [1.5, 86400.0, 0.0, 1.0, None]


def test_every_malformed_line_of_every_file_is_reported_at_once(write_dataset: Write) -> None:
    folder = write_dataset(
        corpus=[
            {"_id": "a", "title": "A", "text": "x"},
            '{"_id": "b", "text": ',
            "[1, 2]",
            {"title": "no id"},
            {"_id": 5, "text": "x"},
            {"_id": "a", "text": "again"},
            {"_id": "c", "text": ["x"], "metadata": {"tier": "normale", "triggers": "one", "created_at": "soon"}},
            {"_id": "d", "text": "x", "metadata": []},
            '{"_id": "e", "text": "\\ud800"}',
        ],
        queries=[
            {"_id": "q", "text": "x"},
            {"_id": "r", "text": " "},
            {"_id": "s"},
            {"_id": "t", "text": "?!"},
            {"_id": "u", "text": "x" * 10_001},
            {"_id": "q", "text": "y"},
        ],
        qrels=[("q", "a", 1), ("q", "a", 2), ("v", "w", 1), ("q", "c", "high"), ("q", "a"), ("q", "d", "nan")],
        edges=[("a", "enabled", "a", 1), ("a", "likes", "c", 1), ("a", "caused", "z", 2), ("c", "caused", "d", "x")],
    )
    assert problems(folder) == [
        "corpus.jsonl:2:22: the line is not JSON: Expecting value",
        "corpus.jsonl:3:1: a line must be an object; found a list",
        "corpus.jsonl:4:1: the key '_id' is missing",
        "corpus.jsonl:5:1: '_id' must be a text; found a number 5",
        "corpus.jsonl:6:1: the id 'a' is already used in line 1",
        "corpus.jsonl:7:1: 'metadata.tier' is 'normale'; did you mean 'normal'?",
        "corpus.jsonl:7:1: 'text' must be a text; found a list",
        "corpus.jsonl:7:1: 'metadata.triggers' must be a list of texts; found a text 'one'",
        "corpus.jsonl:7:1: 'metadata.created_at' must be an ISO 8601 date or a number of seconds since 1970; "
        "found a text 'soon'",
        "corpus.jsonl:8:1: 'metadata' must be an object; found a list",
        "corpus.jsonl:9:1: 'text' holds half a surrogate pair, which is not a character",
        "edges.tsv:2:1: 'a' is linked to itself",
        "edges.tsv:3:1: 'likes' is not a relation; "
        "accepted: caused, contradicts, derived_from, enabled, supersedes, supports",
        "edges.tsv:4:1: the id 'z' is not in corpus.jsonl",
        "edges.tsv:4:1: the strength is 2; accepted: 0 to 1",
        "edges.tsv:5:1: the strength must be a number; found 'x'",
        "qrels/test.tsv:3:1: 'a' is judged twice for 'q', as 1 and as 2",
        "qrels/test.tsv:4:1: the id 'v' is not in queries.jsonl",
        "qrels/test.tsv:4:1: the id 'w' is not in corpus.jsonl",
        "qrels/test.tsv:5:1: the score must be a number; found 'high'",
        "qrels/test.tsv:6:1: a line needs 3 cells separated by tabs (query-id corpus-id score); found 2 in 'q\\ta'",
        "qrels/test.tsv:7:1: the score must be a number; found 'nan'",
        "queries.jsonl:2:1: 'text' is empty",
        "queries.jsonl:3:1: the key 'text' is missing",
        "queries.jsonl:4:1: the query '?!' contains no letter or digit",
        "queries.jsonl:5:1: the query has 10,001 characters; a query may have 10,000",
        "queries.jsonl:6:1: the id 'q' is already used in line 1",
    ]


def test_a_line_that_is_not_utf8_is_named_with_its_byte(write_dataset: Write) -> None:
    folder = write_dataset()
    with (folder / "corpus.jsonl").open("ab") as file:
        file.write(b'{"_id": "caf\xe9"}\n')
    assert problems(folder) == ["corpus.jsonl:5:13: the line is not UTF-8 text"]


def test_fifty_problems_are_listed_and_the_rest_counted(write_dataset: Write) -> None:
    found = problems(write_dataset(corpus=["{"] * 60, qrels=[]))
    assert len(found) == 51
    assert found[-1] == "10 more problems; the first 50 are listed"


def test_a_missing_header_is_shown_with_what_stands_there(write_dataset: Write) -> None:
    folder = write_dataset()
    (folder / "qrels" / "test.tsv").write_text("q1 0 fusion 1\n")
    assert problems(folder) == [
        "qrels/test.tsv:1:1: the first line must be the header query-id corpus-id score, separated by tabs; "
        "found 'q1 0 fusion 1'"
    ]


def test_missing_files_are_all_named(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text("")
    assert problems(tmp_path) == [
        f"'{tmp_path}' has no file queries.jsonl; a dataset needs corpus.jsonl, queries.jsonl and qrels/test.tsv",
        f"'{tmp_path}' has no file qrels/test.tsv; a dataset needs corpus.jsonl, queries.jsonl and qrels/test.tsv",
    ]
