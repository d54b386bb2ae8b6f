from __future__ import annotations

import pytest

from speckit_memory.config.yaml.reader import read
from speckit_memory.errors import Where
from speckit_memory.memory.parsing.declarations import causal_links
from speckit_memory.memory.store.records import Link, Relation


@pytest.mark.requirement("I3.words")
@pytest.mark.parametrize(
    ("word", "link"),
    [
        ("caused_by", Link(Relation.CAUSED, "x", 1.0, "caused_by: x", reverse=True)),
        ("supersedes", Link(Relation.SUPERSEDES, "x", 1.0, "supersedes: x")),
        ("derived_from", Link(Relation.DERIVED_FROM, "x", 1.0, "derived_from: x")),
        ("blocks", Link(Relation.ENABLED, "x", 0.5, "blocks: x")),
        ("related_to", Link(Relation.SUPPORTS, "x", 0.5, "related_to: x")),
        *((relation.value, Link(relation, "x", 1.0, f"{relation.value}: x")) for relation in Relation),
    ],
)
def test_each_word_declares_its_edge(word: str, link: Link) -> None:
    node, _ = read(f"{word}: [x, x, '']", "note.md")
    assert node is not None

    assert causal_links.declared_links(node) == ({link: Where("note.md", 1, len(word) + 4)}, [])


@pytest.mark.requirement("I3")
def test_unknown_words_and_wrong_forms_are_reported_with_their_place() -> None:
    node, _ = read("cause_by: x\nblocks: [{a: b}, y]\nsupports:\n", "note.md")
    assert node is not None

    links, problems = causal_links.declared_links(node)

    assert [link.target for link in links] == ["y"]
    assert [(p.code, p.where) for p in problems] == [
        ("E090", Where("note.md", 1, 1)),
        ("E090", Where("note.md", 2, 10)),
    ]
    assert problems[0].hint == "did you mean 'caused_by'?"


@pytest.mark.requirement("I3")
@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("Text.\n\n```yaml\ncausalLinks:\n  supersedes:\n    - old.md\n```\n", 6, 7),
        ("Text.\n\n    causalLinks:\n      supersedes: ['old.md']\n\nmore", 4, 20),
        ("<!-- ANCHOR:links -->\ncausal_links:\n  supersedes:\n  - old.md\n<!-- /ANCHOR:links -->", 4, 5),
    ],
)
def test_a_block_in_the_text_declares_links(text: str, line: int, column: int) -> None:
    links, problems = causal_links.body_links(text, "note.md")

    link = Link(Relation.SUPERSEDES, "old.md", 1.0, "supersedes: old.md")
    assert (links, [problem.message for problem in problems]) == ({link: Where("note.md", line, column)}, [])


def test_problems_of_a_block_have_lines_of_the_file() -> None:
    _, problems = causal_links.body_links("one\n\ncausalLinks:\n  bloks: x\n", "note.md", first_line=10)

    assert [problem.where for problem in problems] == [Where("note.md", 13, 3)]


METADATA = (
    "# Session\n\n## MEMORY METADATA\n\n```yaml\nsession: 4\ncausal_links:\n  caused_by:\n    - a.md\n    - a.md\n"
)
METADATA += "  supersedes: ['b.md', \"c.md\"]\n  blocks: []\nowner: x\n```\n"


@pytest.mark.requirement("I3.words")
def test_a_block_of_metadata_in_the_text_declares_links_among_other_keys() -> None:
    links, problems = causal_links.body_links(METADATA, "note.md")

    assert [(link.evidence, where.line) for link, where in links.items()] == [
        ("caused_by: a.md", 9), ("supersedes: b.md", 11), ("supersedes: c.md", 11),
    ]  # fmt: skip
    assert problems == []
    for other in (
        METADATA.replace("METADATA", "DATA"),
        METADATA.replace("```yaml\n", "```yaml\n---\n"),
        METADATA.replace("```yaml", "```text"),
    ):
        assert causal_links.body_links(other, "note.md") == ({}, [])


def test_an_example_of_front_matter_declares_nothing() -> None:
    text = "```yaml\n---\ntitle: Example\ncausalLinks:\n  supersedes: old.md\n---\n```\n"

    assert causal_links.body_links(text, "note.md") == ({}, [])


@pytest.mark.requirement("I3")
def test_a_target_that_means_no_memory_or_several_is_reported() -> None:
    places = [Where("note.md", line, 5) for line in range(1, 6)]
    targets = ["a/plan.md", "spec.md", "plan.md", "none.md", "lan.md"]

    problems = causal_links.unresolved(zip(targets, places, strict=True), {"a/plan.md", "b/plan.md", "a/spec.md"})

    assert [(str(problem), problem.hint) for problem in problems] == [
        ("note.md:3:5: E090 'plan.md' names 2 memories", "It may mean a/plan.md, b/plan.md."),
        (
            "note.md:4:5: E090 'none.md' names no memory",
            "The link is kept and takes effect once that memory is stored.",
        ),
        ("note.md:5:5: E090 'lan.md' names no memory", "The link is kept and takes effect once that memory is stored."),
    ]
