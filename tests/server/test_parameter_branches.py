"""Parameters that a tool uses on several ways do what they say on each of them.

`test_tool_parameters` tries each parameter on one way; these are the others, and those whose effect shows in what is
asked afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from speckit_memory.engine import Memory
from speckit_memory.engine.vectors_to_come import WHO_EMBEDS
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing.embedders import StaticEmbedder
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from tests.server.test_tool_parameters import (
    DEEP,
    QUOKKA,
    SPOON,
    Answer,
    Call,
    Case,
    answers,
    given_budgets,
    keys,
    memory,
    modes,
    other_keys,
    refused_first,
    rows,
    scores,
    texts,
)

__all__ = ["memory"]  # the fixture

Look = Callable[[Any], Call]
"""What is asked after a call with a value of the parameter; its answer is looked at."""
BROKEN = "# Broken\n\n<!-- ANCHOR:open -->\nNo end.\n"
WORDS = {"content": "Some words of a note.", "filePath": "notes/n.md"}
APPENDED = {"filePath": "notes/fix.md", "content": "More.", "edit": "append"}
LONG_QUESTION = "the wallaby index of which the notes say that it finds every single word of the documents"
LONG_REFACTORING = "refactor the wallaby index so that it finds every single word of the documents of notes"
REMOVED: tuple[Call, ...] = (("memory_delete", {"id": "notes/n.md"}),)
CRITICAL: tuple[Call, ...] = (("memory_update", {"id": "notes/fix.md", "importanceTier": "critical"}),)


def resumed(session: str) -> Call:
    return "memory_context", {"input": "continue", "mode": "resume", "sessionId": session}


def read(key: str) -> Look:
    return lambda _: ("memory_search", {"key": key})


def attended(key: str) -> Callable[[Answer, Answer], bool]:
    """Whether either session that is resumed attended to this memory, and to no other."""
    return lambda *both: [[row["key"] for row in each["data"]["attended"]] for each in both] == [[key], [key]]


def outcomes(*told: str) -> Callable[[Answer, Answer], bool]:
    return lambda *both: [each["data"]["outcome"] for each in both] == [*told]


def codes(*told: str) -> Callable[[Answer, Answer], bool]:
    return lambda *both: [each["error"]["code"] for each in both] == [*told]


WAYS: dict[str, tuple[str, str, Case, Look | None]] = {
    "edit: content": (
        "memory_save", "content",
        Case({"filePath": "notes/fix.md", "edit": "append"}, ("One word.", "Another."),
             lambda a, b: "One word." in texts(a) and "Another." not in texts(a) and "Another." in texts(b)),
        read("notes/fix.md"),
    ),
    "edit: how": (
        "memory_save", "edit",
        Case({"filePath": "notes/fix.md", "content": "Only this.", "section": "Fix"}, ("append", "replace"),
             lambda a, b: "To fix the search" in texts(a) and "To fix the search" not in texts(b)),
        read("notes/fix.md"),
    ),
    "edit: force": ("memory_save", "force", Case({**APPENDED, "content": BROKEN}, (None, True), refused_first), None),
    "edit: dryRun": ("memory_save", "dryRun", Case(APPENDED, (True, False), outcomes("dry_run", "updated")), None),
    "edit: sessionId": ("memory_save", "sessionId", Case(APPENDED, ("s", "t"), attended("notes/fix.md")), resumed),
    "content: content": (
        "memory_save", "content",
        Case({"dryRun": True}, ("# One\n\nSome words.", "# Two\n\nSome words."), other_keys), None,
    ),
    "content: force": ("memory_save", "force", Case({"content": BROKEN}, (None, True), refused_first), None),
    "content: dryRun": ("memory_save", "dryRun", Case(WORDS, (True, False), outcomes("dry_run", "created")), None),
    "content: tier": (
        "memory_save", "tier",
        Case(WORDS, (None, "critical"), lambda *both: [rows(x)[0]["tier"] for x in both] == ["normal", "critical"],
             between=REMOVED),
        read("notes/n.md"),
    ),
    "content: asyncEmbedding": (
        "memory_save", "asyncEmbedding",
        Case(WORDS, (True, False), lambda *both: [x["data"]["embedding_pending"] for x in both] == [True, False],
             between=REMOVED),
        None,
    ),
    "content: sessionId": (
        "memory_save", "sessionId", Case(WORDS, ("s", "t"), attended("notes/n.md"), between=REMOVED), resumed,
    ),
    "file: sessionId": (
        "memory_save", "sessionId", Case({"filePath": "notes/new.md"}, ("s", "t"), attended("notes/new.md")), resumed,
    ),
    "key: anchors": (
        "memory_search", "anchors",
        Case({"key": "docs/cache/spec.md"}, (None, ["summary"]),
             lambda a, b: "many entries" in texts(a) and "many entries" not in texts(b)),
        None,
    ),
    "key: tokenBudget": (
        "memory_search", "tokenBudget", Case({"key": "notes/fix.md"}, (200, 5000), given_budgets), None,
    ),
    "includeContent: budget": (
        "memory_search", "includeContent",
        Case(QUOKKA, (False, True), lambda a, b: a["meta"]["token_budget"] < b["meta"]["token_budget"]), None,
    ),
    "auto: input": (
        "memory_context", "input",
        Case({}, (LONG_QUESTION, LONG_REFACTORING), lambda a, b: modes(a, b) == ["focused", "deep"]), None,
    ),
    "question: input": (
        "memory_context", "input",
        Case({}, (f"why {LONG_REFACTORING}", LONG_REFACTORING), lambda a, b: modes(a, b) == ["focused", "deep"]), None,
    ),
    "pressed: mode": (
        "memory_context", "mode",
        Case({"input": DEEP, "limit": 5, "tokenUsage": 0.95}, ("quick", "deep"), lambda a, b: scores(a) != scores(b)),
        None,
    ),
    "resumed: mode": (
        "memory_context", "mode",
        Case({"input": "continue"}, ("auto", "resume"),
             lambda *both: ["mode=focused" in "".join(x["hints"]) for x in both] == [True, False]),
        None,
    ),
    "one: confirm": (
        "memory_delete", "confirm", Case({"id": "notes/fix.md"}, (None, True), refused_first, CRITICAL), None,
    ),
    "one: dryRun": (
        "memory_delete", "dryRun",
        Case({"id": "notes/fix.md"}, (True, False),
             lambda *both: ["notes/fix.md" in keys(each) for each in both] == [True, False]),
        lambda _: ("memory_list", {}),
    ),
    "undo: confirm": ("memory_delete", "confirm", Case({"undo": "absent"}, (None, True), codes("E106", "E030")), None),
    "undo: dryRun": ("memory_delete", "dryRun", Case({"undo": "absent"}, (None, True), codes("E106", "E030")), None),
    "told: offset": (
        "memory_list", "offset",
        Case({"limit": 2}, (0, 2),
             lambda *both: [(x["data"]["offset"], x["hints"][0][-1]) for x in both] == [(0, "2"), (2, "4")]),
        None,
    ),
    "session: include_cognitive": (
        "memory_match_triggers", "include_cognitive",
        Case({"prompt": "sacred spoon", "session_id": "s"}, (True, False),
             lambda *both: ["attention" in rows(each)[0] for each in both] == [True, False], SPOON),
        None,
    ),
}  # fmt: skip


def pair_of(memory: Memory, tool: str, name: str, case: Case, look: Look | None) -> tuple[Answer, Answer]:
    """Both answers of a case, or what is asked after either call."""
    calls, looked = [*case.before], []
    for number, value in enumerate(case.values):
        calls += [(tool, case.shared if value is None else {**case.shared, name: value})]
        calls += [look(value)] if look else []
        looked.append(len(calls) - 1)
        calls += case.between if number == 0 else ()
    given = answers(memory, calls)
    return given[looked[0]], given[looked[1]]


@pytest.mark.parametrize("way", WAYS)
def test_a_parameter_does_what_it_says_on_this_way_too(way: str, memory: Memory) -> None:
    tool, name, case, look = WAYS[way]

    one, other = pair_of(memory, tool, name, case, look)

    assert case.differ(one, other), (one, other)


@pytest.mark.requirement("T28.chosen")
def test_what_a_session_reads_by_its_key_is_a_use_of_what_that_session_was_shown(memory: Memory) -> None:
    def uses(session: str) -> int:
        answers(memory, [("memory_search", {"key": "docs/cache/spec.md", "sessionId": session})])
        memory.write_notes()
        with EvaluationDatabase.open(evaluation_file(memory.database.path), create=False) as database:
            return database.counts()["uses"]

    answers(memory, [("memory_search", {**QUOKKA, "sessionId": "s"})])

    assert [uses("t"), uses("s")] == [0, 1]


@pytest.mark.requirement("T1.parameters", "C17")
def test_a_full_context_searches_as_the_mode_that_it_names_does(memory: Memory) -> None:
    asked = {"input": DEEP, "limit": 5}
    with memory.using("default", {"expansion.modes": "[auto]"}) as expanding:
        pressed, quick = answers(
            expanding, [("memory_context", {**asked, **more}) for more in ({"tokenUsage": 0.95}, {"mode": "quick"})]
        )
        unpressed = expanding.search(DEEP, limit=5, deadline_ms=None)

    assert modes(pressed, quick) == ["quick", "quick"]
    assert scores(pressed) == scores(quick)
    assert scores(pressed) != [(row.key, round(row.score, 4)) for row in unpressed.results], "or nothing is shown"


@pytest.mark.requirement("T8.parameters")
def test_a_partial_update_is_allowed_where_the_model_fails(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise SpeckitError("E001", "the model cannot be read")

    monkeypatch.setattr(StaticEmbedder, "pool_documents", fail)
    file = memory.settings.root / "notes" / "fix.md"
    before = file.read_text(encoding="utf-8")
    case = Case({"id": "notes/fix.md", "title": "Other"}, (False, True), refused_first)

    refused, allowed = pair_of(memory, "memory_update", "allowPartialUpdate", case, None)

    assert refused["error"]["code"] == "E081"
    assert "nothing was changed" in refused["error"]["message"]
    assert allowed["data"]["embedding_pending"]
    assert any(hint.endswith(f"vectors follow: {WHO_EMBEDS}") for hint in allowed["hints"])
    assert allowed["data"]["was"] == {"title": "Fix"}
    assert "title: Other" in file.read_text(encoding="utf-8").replace('"', "") != before
