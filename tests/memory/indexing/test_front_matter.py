from __future__ import annotations

import pytest

from speckit_memory.errors import Where
from speckit_memory.memory.parsing.declarations.front_matter import FrontMatter, epoch_seconds, parse
from speckit_memory.memory.parsing.declarations.metadata import MetadataField
from speckit_memory.memory.store.records import Link, Relation, Tier


@pytest.mark.requirement("I3", "I1.front_matter")
def test_every_key_is_read_and_unknown_ones_are_kept() -> None:
    text = (
        '---\ntitle: "Ranks: fused"\ndescription: Why\ntrigger_phrases:\n  - rank fusion\n  - RRF\n'
        "importance_tier: Critical\ncontext_type: decision\nmemory_type: semantic\ncreated: 2026-01-31\n"
        "causalLinks: {caused_by: [a.md]}\nowner: {team: search}\n---\n# Body\n"
    )

    assert parse(text, "note.md") == (
        FrontMatter(
            title="Ranks: fused",
            description="Why",
            triggers=("rank fusion", "RRF"),
            tier=Tier.CRITICAL,
            context_type="decision",
            memory_type="semantic",
            created_at=1769817600.0,
            links={Link(Relation.CAUSED, "a.md", 1.0, "caused_by: a.md", reverse=True): Where("note.md", 11, 27)},
            extra={"owner": '{"team": "search"}'},
            fields=(
                MetadataField("description", "Why"),
                MetadataField("importance_tier", "Critical"),
                MetadataField("context_type", "decision"),
                MetadataField("memory_type", "semantic"),
                MetadataField("created", "2026-01-31"),
                MetadataField("owner", '{"team": "search"}'),
            ),
            body_start=text.index("# Body"),
            body_line=14,
        ),
        [],
    )


@pytest.mark.requirement("I1")
def test_unusable_values_are_reported_with_their_place_and_the_rest_counts() -> None:
    text = "---\ntitle: [a]\ntriggers: [one, [two]]\ntier: imporant\ndate: soon\ntrigger_phrases: x\n---\nbody"

    front, problems = parse(text, "note.md")

    assert front == FrontMatter(
        triggers=("one",),
        fields=(MetadataField("tier", "imporant"), MetadataField("date", "soon")),
        body_start=text.index("body"),
        body_line=8,
    )
    assert [(p.code, p.where) for p in problems] == [
        ("E090", Where("note.md", line, column)) for line, column in ((2, 8), (3, 17), (4, 7), (5, 7), (6, 1))
    ]
    assert problems[2].hint == "did you mean 'important'?"


@pytest.mark.parametrize(
    ("text", "code", "line"), [("---\na: b: c\n---\nbody", "E111", 2), ("---\n- a\n---\nbody", "E090", 2)]
)
def test_a_broken_block_is_reported_and_stays_in_the_body(text: str, code: str, line: int) -> None:
    front, problems = parse(text, "note.md")

    assert front == FrontMatter()
    assert [(problem.code, problem.where and problem.where.line) for problem in problems] == [(code, line)]


@pytest.mark.requirement("I1")
def test_unknown_types_are_reported_and_left_out() -> None:
    front, problems = parse("---\ncontext_type: nonsense\nmemory_type: Semantc\n---\nbody", "note.md")

    # a kind of document that is none of ours tells something all the same: handovers say so here
    assert front == FrontMatter(
        extra={"context_type": "nonsense"},
        fields=(MetadataField("context_type", "nonsense"), MetadataField("memory_type", "Semantc")),
        body_start=52,
        body_line=5,
    )
    assert [(str(problem), problem.hint) for problem in problems] == [
        (
            "note.md:2:15: E090 'nonsense' is not a context type",
            "accepted: decision, discovery, general, implementation, research",
        ),
        ("note.md:3:14: E090 'Semantc' is not a memory type", "did you mean 'semantic'?"),
    ]


@pytest.mark.requirement("I1")
@pytest.mark.parametrize(
    ("key", "meant"),
    [("triger_phrases", "trigger_phrases"), ("Title", "title"), ("Context-Type", "context_type")],
)
def test_a_misspelt_key_is_reported_and_kept(key: str, meant: str) -> None:
    front, problems = parse(f"---\ndate: 2026-01-31\n{key}: decision\n---\nbody", "note.md")

    assert front.extra == {key: "decision"}
    assert [(str(problem), problem.hint) for problem in problems] == [
        (f"note.md:3:1: E090 '{key}' is not a key of front matter and declares nothing", f"did you mean '{meant}'?")
    ]


@pytest.mark.parametrize("key", ["dates", "update", "updated_at", "subtitle", "type", "context", "status", "tags"])
def test_a_key_of_somebody_elses_is_no_mistake(key: str) -> None:
    assert parse(f"---\n{key}: x\n---\nbody", "note.md")[1] == []


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("text", ["---\ntitle: A\n\nbody\n", "---\nowner: x\ntriggers:\n  - a\n# Body\n", "---\ntier:"])
def test_a_block_that_is_not_closed_is_reported_and_stays_in_the_body(text: str) -> None:
    front, problems = parse(text, "note.md")

    assert front == FrontMatter()
    assert [str(problem) for problem in problems] == ["note.md:1:1: E090 front matter is opened here and never closed"]


@pytest.mark.parametrize("text", ["---\nNote: a break.\n", "---\n\ntitle: of something\n", "---\ntitled: a\n"])
def test_a_break_between_paragraphs_is_not_front_matter(text: str) -> None:
    assert parse(text, "note.md") == (FrontMatter(), [])


@pytest.mark.parametrize("text", ["", "body", "--- \nno end", "text\n---\na: b\n---\n"])
def test_a_text_without_a_block_at_its_head_declares_nothing(text: str) -> None:
    assert parse(text, "note.md") == (FrontMatter(), [])


def test_an_empty_block_declares_nothing_and_is_not_body() -> None:
    assert parse("---\n---\nbody", "note.md") == (FrontMatter(body_start=8, body_line=3), [])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1970-01-02", 86400.0), ("1970-01-01T01:00:00+01:00", 0.0), ("1970-01-01 00:00:01Z", 1.0), ("8 May 2023", None)],
)
def test_dates_are_utc_unless_they_name_an_offset(text: str, seconds: float | None) -> None:
    assert epoch_seconds(text) == seconds
