"""Documents built to cost time or memory. What is made of one stays in proportion to its length, and it is told."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from hostile_documents import SHAPES
from hypothesis import given
from hypothesis import strategies as st
from tally import Tally

from speckit_memory.memory.indexing import Analyser, Source, documents
from speckit_memory.memory.indexing.documents import build
from speckit_memory.memory.parsing.limits import (
    LONGEST_PATH,
    MOST_LINKS,
    MOST_PASSAGES,
    MOST_PROBLEMS,
    MOST_TAGS,
    MOST_TRIGGERS,
)
from speckit_memory.memory.parsing.markdown import chunks
from speckit_memory.memory.store.records import Document
from tests.server.doors import call

ANALYSER = Analyser()
SIZE = 150_000
MOST_PER_BYTE = 12
"""Characters that may be made of a byte: identifiers are words as a whole and in parts, and some signs are many."""
HEAD = 2000
"""Characters that stand above a passage."""


def made(document: Document) -> int:
    """The characters that are stored, embedded and compared for a document."""
    passages = sum(len(c.text) + len(c.heading) + sum(map(len, c.tokens)) for c in document.chunks)
    links = sum(len(link.target) + len(link.evidence) for link in document.links)
    extra = sum(len(name) + len(value) for name, value in document.extra.items())
    return len(document.title) + sum(map(len, document.triggers)) + passages + links + extra


@pytest.mark.requirement("I5", "I8")
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_made_of_a_document_is_in_proportion_to_its_length(shape: str, tally: Tally) -> None:
    document, problems = build(Source("a.md", SHAPES[shape](SIZE)), ANALYSER)
    assert made(document) < MOST_PER_BYTE * SIZE
    assert all(len(chunk.heading) <= HEAD for chunk in document.chunks)
    assert len(document.title) <= 120
    assert len(problems) <= 3 * MOST_PROBLEMS
    tally.tried()


@pytest.mark.requirement("I8")
def test_one_run_over_all_hostile_documents_stores_each_and_the_good_one(tmp_path: Path, tally: Tally) -> None:
    for name, shape in SHAPES.items():
        (tmp_path / f"{name}.md").write_text(shape(12_000), encoding="utf-8", newline="")
        tally.tried()
    (tmp_path / "good.md").write_text("# Good\n\nThe quokka survived.\n")

    assert len(call(tmp_path, ["index", ".", "--json"]).ok().json["created"]) == len(SHAPES) + 1
    found = call(tmp_path, ["search", "which quokka survived", "--json"])
    assert found.json["results"][0]["key"] == "good.md"


def limits(text: str) -> tuple[Document, list[str]]:
    """The document, and where it met which limit."""
    document, problems = build(Source("a.md", text), ANALYSER)
    return document, [f"{p.where.line}: {p.message}" for p in problems if p.code == "E094" and p.where]


@pytest.mark.requirement("I5", "I9")
def test_what_is_over_a_limit_is_told_once_with_its_place(tally: Tally) -> None:
    body = "Words of a passage.\n\n" * 200
    document, told = limits(f"# Title\n\n## {'far ' * 1000}\n\n{body}## {'wide ' * 1000}\n\n{body}")
    assert told == [
        "3: a heading is longer than 800 characters, or a path of headings than 1,600 (2 times, first here): "
        "it is shortened above its passages; all its words are found in the text"
    ]
    assert document.chunks[-1].heading.startswith("Title > wide wide")
    assert document.chunks[-1].heading.endswith("wide…")
    assert sum(chunk.tokens.count("wide") for chunk in document.chunks) == 1000

    nested = "".join(f"{'#' * level} {'deep ' * 100}{level}\n\n" for level in range(1, 7))
    document, told = limits(nested + body)
    assert len(told) == 1
    assert len(document.chunks[-1].heading) <= LONGEST_PATH + 5 * len(" > ")

    front = "".join(f"  - phrase {number}\n" for number in range(MOST_TRIGGERS + 3))
    document, told = limits(f"---\ntrigger_phrases:\n{front}---\ntext\n")
    assert [line.partition(":")[0] for line in told] == [str(MOST_TRIGGERS + 3)]
    assert len(document.triggers) == MOST_TRIGGERS

    document, told = limits(f"---\ntitle: T\nnote: {'x' * 100_001}\n---\nbody\n")
    message = "1: the front matter is longer than 100,000 characters: it counts as text and declares nothing"
    assert message in told
    assert document.body.startswith("---\ntitle: T\n")

    targets = "".join(f"    - {number}.md\n" for number in range(MOST_LINKS + 5))
    document, told = limits(f"---\ncausalLinks:\n  supports:\n{targets}---\ntext\n")
    assert [line.partition(":")[0] for line in told] == [str(MOST_LINKS + 4)]
    assert len(document.links) == MOST_LINKS
    document, told = limits(f"causalLinks:\n  supports: {'x' * 1001}\n")
    assert (len(document.links), len(told)) == (0, 1)
    document, told = limits("causalLinks:\n  supports: a.md\n\n" * 1200)
    assert (len(document.links), len(told)) == (1, 1)

    tags = "".join(f"<!-- ANCHOR:a{n} -->\nx\n<!-- /ANCHOR:a{n} -->\n" for n in range(MOST_TAGS))
    document, told = limits(tags)
    assert len(told) == 1
    assert len({chunk.anchor for chunk in document.chunks} - {""}) == MOST_TAGS // 2

    sections = "".join(f"# part {n}\n## piece {n}\nx\n" for n in range(MOST_PASSAGES + 9))
    document, told = limits(sections)
    assert len(document.chunks) == MOST_PASSAGES
    assert document.chunks[-1].last_line < int(told[0].partition(":")[0])
    assert document.body == sections
    tally.tried(9)


@pytest.mark.requirement("I5", "I9")
@pytest.mark.parametrize(
    ("where", "limit", "message"),
    [
        (documents, "MOST_WORDS", "words"),
        (documents, "MOST_DISTINCT_WORDS", "different words"),
        (documents, "MOST_PASSAGES", "passages"),
    ],
)
def test_the_text_before_a_limit_is_found_and_the_rest_is_not(
    where: object, limit: str, message: str, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    text = "".join(f"word{number} says something.\n\n" for number in range(6000))
    whole = build(Source("a.md", text), ANALYSER)[0].chunks
    monkeypatch.setattr(where, limit, 40 if limit == "MOST_PASSAGES" else 2000)

    document, told = limits(text)

    kept = len(document.chunks)
    assert 5 < kept < len(whole)
    assert document.chunks == whole[:kept]
    assert told[0].startswith(f"{whole[kept].first_line}: ")
    assert message in told[0]
    assert document.body == text
    tally.tried()


@pytest.mark.requirement("I5")
def test_behind_the_last_paragraph_that_counts_passages_are_cut_by_length(
    monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    monkeypatch.setattr(chunks, "MOST_BLOCKS", 50)
    text = "".join(f"# Heading {number}\n\nText below it.\n\n" for number in range(500))
    document, told = limits(text)
    assert len(told) == 1
    assert "".join("".join(c.text for c in document.chunks).split()) == "".join(text.split())
    tally.tried()


@pytest.mark.requirement("I8")
@pytest.mark.parametrize(
    "text", ["dec\u0131ded ", "D\u0131scovered", "\u0130mplemented", "re\u017fearched", "\u0131mplemented"]
)
def test_letters_that_only_some_take_for_others_stop_no_run(text: str, tmp_path: Path, tally: Tally) -> None:
    (tmp_path / "a.md").write_text(f"# A\n\n{text}\n{text}\n", encoding="utf-8")
    (tmp_path / "b.md").write_text("# B\n\ngood\n")
    ran = call(tmp_path, ["index", ".", "--json"])
    assert (ran.status, ran.json["created"]) == (0, ["a.md", "b.md"])
    tally.tried()


@pytest.mark.requirement("I9")
def test_of_thousands_of_problems_the_first_are_told_and_the_others_counted(tmp_path: Path, tally: Tally) -> None:
    (tmp_path / "tags.md").write_text("<!-- ANCHOR:!! -->\n" * 4000)
    (tmp_path / "keys.md").write_text("---\n" + "key: value\n" * 4000 + "---\ntext\n")
    links = "".join(f"    - page-{number}.md\n" for number in range(900))
    (tmp_path / "links.md").write_text(f"---\ncausalLinks:\n  supports:\n{links}---\ntext\n")

    problems = call(tmp_path, ["index", ".", "--json"]).json["problems"]

    for file, code, number in (("tags", "E091", 4000), ("keys", "E112", 3999), ("links", "E090", 900)):
        told = [p["message"] for p in problems if p["code"] == code and p["where"]["file"] == f"{file}.md"]
        assert len(told) == MOST_PROBLEMS + 1
        assert told[-1] == f"{number - MOST_PROBLEMS:,} further problems of this kind in the same document"
        tally.tried(number)


@given(st.text(st.characters(exclude_categories=[]), max_size=400), st.integers(1, 60))
def _any_text_makes_a_document(text: str, times: int) -> None:
    document, _ = build(Source("a.md", text * times), ANALYSER)
    assert all(token and " " not in token for chunk in document.chunks for token in chunk.tokens)


@pytest.mark.requirement("I5")
def test_any_text_makes_a_document(tally: Tally) -> None:
    _any_text_makes_a_document()
    tally.tried(150)


@pytest.mark.requirement("I5")
def test_passages_are_made_one_by_one(tally: Tally) -> None:
    """Whoever takes three passages of a long text has not had the rest of it read."""
    read = chunks.split("".join(f"# Part {number}\n\n{'A sentence. ' * 90}\n\n" for number in range(4000)))
    numbers = [number for number, _ in zip(count(), (next(read) for _ in range(3)), strict=False)]
    assert numbers == [0, 1, 2]
    assert next(read).heading == "Part 3"
    tally.tried()
