from __future__ import annotations

import pytest

from speckit_memory.memory.parsing import classify
from speckit_memory.memory.store.records import Tier


@pytest.mark.requirement("I4.context")
@pytest.mark.parametrize(
    ("declared", "title", "body", "expected"),
    [
        ("planning", "We decided", "decided decided", "planning"),
        ("", "What we explored", "", "research"),
        ("", "Log", "Implemented the cache, then implemented the scan.", "implementation"),
        ("", "Log", "We decided on RRF. It was decided twice.", "decision"),
        ("", "Log", "Found a leak and found its cause", "discovery"),
        ("", "Log", "found in passing", "general"),
        ("", "Log", "found, found; decided, decided", "general"),
        ("", "Foundations", "profound foundations", "general"),
        ("", "Log", "FOUND é and Found", "discovery"),
        ("", "Log", "ſ and expLored, ınvestigated and explored", "research"),
        ("", "Log", "ınvestigated ınvestigated", "general"),
    ],
)
def test_the_leading_words_give_the_context_type(declared: str, title: str, body: str, expected: str) -> None:
    assert classify.context_type(declared, title, body) == expected


@pytest.mark.requirement("I4.context")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # two of three uses look things up
        ("Used `Grep` for the name, `Read(src/cache.py)`, then `Edit`.", "research"),
        ('Grep("TODO")\nGlob("**/*.py")\nBash("ls")', "research"),
        # two of four are no majority, and one is none either
        ("`Grep`, `Read`, `Edit`, `Write`", "general"),
        ("`Grep`", "general"),
        # that a person was asked decides, whatever else was used
        ("`Grep`, `Read`, `Glob`, and AskUserQuestion(which store?)", "decision"),
        # words go first
        ("`Grep` and `Read`, then it was implemented, and implemented again", "implementation"),
        # names that are no code, and a program's own functions
        ("Grep the log. Read the manual; Glob is a star, AskUserQuestion a tool.", "general"),
        ("func Grep(p []byte)\nf.Grep(p)\nReGrep(p)\n`Greps`", "general"),
        ("Read(p), Read(q), Write(p)", "general"),
    ],
)
def test_tools_tell_the_context_type_that_words_leave_open(body: str, expected: str) -> None:
    assert classify.context_type("", "Log", body) == expected


@pytest.mark.requirement("I4.memory")
@pytest.mark.parametrize(
    ("declared", "tier", "key", "title", "triggers", "expected"),
    [
        ("implicit", Tier.CRITICAL, "tasks.md", "How to", (), "implicit"),
        ("nonsense", Tier.CRITICAL, "tasks.md", "How to", (), "semantic"),
        ("", Tier.NORMAL, "specs/1/tasks.md", "How to", (), "prospective"),
        ("", None, "scratch/guides/x.md", "", (), "procedural"),
        ("", None, "x.md", "How to install it", (), "procedural"),
        ("", None, "x.md", "Plain", ("lesson learned",), "meta-cognitive"),
        ("", None, "x.md", "Plain", (), "declarative"),
    ],
)
def test_the_first_step_that_knows_gives_the_memory_type(
    declared: str, tier: Tier | None, key: str, title: str, triggers: tuple[str, ...], expected: str
) -> None:
    assert classify.memory_type(declared, tier, key, title, triggers).kind == expected


@pytest.mark.requirement("I4.memory")
@pytest.mark.parametrize(
    ("kind", "path", "title"),
    [
        ("working", "scratch/x.md", "A draft"),
        ("episodic", "journal/x.md", "What happened at the meeting"),
        ("prospective", "roadmap/x.md", "Next steps"),
        ("implicit", "conventions/x.md", "Always sorted"),
        ("procedural", "runbooks/x.md", "How to release"),
        ("semantic", "architecture/x.md", "What is fusion"),
        ("autobiographical", "changelog/x.md", "The first milestone"),
        ("meta-cognitive", "lessons/x.md", "A lesson"),
        ("declarative", "facts/x.md", "Ports"),
    ],
)
def test_each_type_is_known_at_each_step_by_the_confidence_of_that_step(kind: str, path: str, title: str) -> None:
    """Each step goes before those after it, which here would all say something else."""
    other = ("todo", "next steps") if kind == "procedural" else ("how to", "steps")
    declared = classify.memory_type(kind, Tier.TEMPORARY, "guides/x.md", "How to", other)
    by_path = classify.memory_type("", Tier.NORMAL, path, "Notes", other)
    by_words = classify.memory_type("", None, "x.md", title, ())

    assert declared == (kind, "declared", 1.0)
    assert by_path == (kind, "path", 0.8)
    assert by_words == ((kind, "words", 0.7) if kind != "declarative" else (kind, "default", 0.5))


@pytest.mark.requirement("I4.memory")
@pytest.mark.parametrize(
    ("tier", "kind"),
    [
        (Tier.CONSTITUTIONAL, "meta-cognitive"),
        (Tier.CRITICAL, "semantic"),
        (Tier.IMPORTANT, "declarative"),
        (Tier.TEMPORARY, "working"),
        (Tier.DEPRECATED, "episodic"),
    ],
)
def test_a_declared_tier_goes_before_the_path(tier: Tier, kind: str) -> None:
    assert classify.memory_type("", tier, "guides/x.md", "How to", ()) == (kind, "tier", 0.9)


@pytest.mark.requirement("I4.documents")
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        *((f"specs/1/{name}", kind) for name, kind in classify.SPEC_DOCUMENTS.items()),
        ("specs/1/memory/plan.md", "memory"),
        ("specs/1/scratch/plan.md", "scratch"),
        ("docs/plan.md", "memory"),
        ("specs/1/other.md", "memory"),
        ("a/constitutional/plan.md", "constitutional"),
    ],
)
def test_the_path_gives_the_document_type(key: str, expected: str) -> None:
    assert classify.document_type(key) == expected


@pytest.mark.requirement("I4.documents")
@pytest.mark.parametrize(
    ("kind", "text", "siblings", "level"),
    [
        ("spec", "<!-- SPECKIT_LEVEL: 3+ -->", (), 3),
        ("plan", "no mark", ("decision-record.md", "checklist.md"), 3),
        ("plan", "no mark", ("checklist.md",), 2),
        ("plan", " " * 3000 + "<!-- SPECKIT_LEVEL: 3 -->", (), 1),
        ("memory", "<!-- SPECKIT_LEVEL: 3 -->", (), None),
    ],
)
def test_the_mark_or_the_files_beside_it_give_the_spec_level(
    kind: str, text: str, siblings: tuple[str, ...], level: int | None
) -> None:
    assert classify.spec_level(kind, text, lambda: frozenset(siblings)) == level
