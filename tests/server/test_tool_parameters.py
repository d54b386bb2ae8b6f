"""Every parameter of every tool changes what it says it changes, through the server and the SDK's client.

Each case is a pair of calls that differ in one parameter alone; a parameter that a tool uses on several ways has a case
for each, named behind a colon. The parameters come from the schemas that the server publishes: a new one fails until it
has a case here, and a tool that drops one on its way fails in the case of it. What no schema allows is refused.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest
from files import write_file
from mcp import Client

from speckit_memory.config.workspace.settings import settings
from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders import StaticEmbedder
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.server.mcp_server.app import MemoryServer, build
from speckit_memory.server.replies.worker_calls import ThreadLimits
from speckit_memory.server.workspace.workspace import Workspace
from tests.server.doors import at, note_as_read

FILES = {
    "docs/cache/spec.md": "---\ntitle: Quokka cache\nimportance_tier: important\ncontext_type: decision\n---\n"
    "# Quokka cache\n\n<!-- ANCHOR:summary -->\nThe quokka cache keeps entries warm.\n<!-- /ANCHOR:summary -->\n\n"
    + "The quokka cache has many entries and a reader. " * 20 + "\n",
    "docs/cache/plan.md": "---\ncontext_type: research\n---\n# Plan\n\nA wallaby index beside the quokka cache.\n",
    "docs/index/wallaby.md": "# Wallaby\n\nThe wallaby index finds every word. The crash handler logs its errors.\n",
    "notes/fix.md": "# Fix\n\nTo fix the search error, change the pipeline config of the quokka cache.\n",
    "notes/bug.md": "# Crash\n\nThe exception of the retrieval settings crashed the query bug handler.\n",
    "rules/always.md": "---\nimportance_tier: constitutional\n---\n# Rules\n\nNever push on Fridays.\n",
}  # fmt: skip
BROKEN = "# Broken\n\n<!-- ANCHOR:open -->\nNo end.\n"
Answer = dict[str, Any]
Call = tuple[str, dict[str, Any]]
Differ = Callable[[Answer, Answer], bool]


@dataclass(frozen=True)
class Case:
    """The arguments that a pair of calls shares, the values of the parameter in either call (None: left out), and what
    must hold of the two answers. `before` prepares the workspace by further calls; those `between` the pair make room
    for the second. With `look` that is called after either of them, and its answers are compared."""

    shared: dict[str, Any]
    values: tuple[Any, Any]
    differ: Differ
    before: tuple[Call, ...] = ()
    between: tuple[Call, ...] = ()
    look: Callable[[Any], Call] | None = None


def both(read: str | Callable[[Answer], Any], *expected: Any) -> Differ:
    """What is read from either answer."""
    return lambda *pair: [at(answer, read) if isinstance(read, str) else read(answer) for answer in pair] == [*expected]


def one_says(path: str, *expected: bool) -> Differ:
    """Which of the two answers says something here."""
    return both(lambda answer: at(answer, path) is not None, *expected)


def tells(path: str) -> Differ:
    """Both succeed, and say different things here."""
    return lambda one, other: "error" not in {**one, **other} and at(one, path) != at(other, path)


def refused_first(one: Answer, other: Answer) -> bool:
    return "error" in one and "error" not in other


def rows(answer: Answer) -> list[Any]:
    """The results but the rules, which surface whatever is asked."""
    found = answer["data"].get("results", answer["data"].get("memories", []))
    return [row for row in found if row["key"] != "rules/always.md"]


def keys(answer: Answer) -> list[str]:
    return [row["key"] for row in rows(answer)]


def scores(answer: Answer) -> list[tuple[str, float]]:
    return [(row["key"], row["score"]) for row in answer["data"]["results"]]


def other_scores(one: Answer, other: Answer) -> bool:
    return scores(one) != scores(other)


def same_scores(one: Answer, other: Answer) -> bool:
    return bool(keys(one)) and scores(one) == scores(other)


def texts(answer: Answer) -> str:
    return "".join(row.get("memory_text", "") for row in answer["data"]["results"])


def only_summary(one: Answer, other: Answer) -> bool:
    return "many entries" in texts(one) and "many entries" not in texts(other)


def within(folder: str) -> Differ:
    return lambda every, some: (
        {key.startswith(folder) for key in keys(some)} == {True} and set(keys(every)) > set(keys(some))
    )


def only(key: str) -> Differ:
    return lambda several, one: len(keys(several)) > 1 and keys(one) == [key]


def gone(first: list[str], second: list[str]) -> Differ:
    return both(lambda answer: [row["key"] for row in answer["data"]["memories"]], first, second)


def takes_part(step: str, *expected: bool) -> Differ:
    return one_says(f"data.timings_ms.steps.{step}", *expected)


def changes(name: str) -> Differ:
    return one_says(f"data.changed.{name}", False, True)


def known(answer: Answer) -> int:
    return int(answer["data"]["updated"] + answer["data"]["unchanged"])


def linked(answer: Answer) -> list[tuple[str, str]]:
    return [(link["relation"], link["target"]) for link in answer["data"]["links"]]


def folders(answer: Answer) -> list[str]:
    return [row["folder"] for row in answer["data"]["folders"]]


def attended(key: str) -> Differ:
    """Whether either session that is resumed attended to this memory, and to no other."""
    return both(lambda answer: [row["key"] for row in answer["data"]["attended"]], [key], [key])


def resumed(session: str) -> Call:
    return "memory_context", {"input": "continue", "mode": "resume", "sessionId": session}


def read(key: str) -> Callable[[Any], Call]:
    return lambda _: ("memory_search", {"key": key})


def saved(*pairs: tuple[str, str]) -> tuple[Call, ...]:
    return tuple(("memory_save", {"filePath": path, "content": text, "force": True}) for path, text in pairs)


def memory_id(key: str) -> int:
    """Ids are given in the order in which files are indexed."""
    return sorted(FILES).index(key) + 1


SPEC_KEY, FIX, BUG, WALLABY = "docs/cache/spec.md", "notes/fix.md", "notes/bug.md", "docs/index/wallaby.md"
SPEC = memory_id(SPEC_KEY)
QUOKKA = {"query": "quokka cache"}
DEEP = "fix the search error in the pipeline config"
ASKED = {"input": "quokka cache"}
EXPLAINED = {**QUOKKA, "explain": True}
LONG_QUESTION = "the wallaby index of which the notes say that it finds every single word of the documents"
LONG_REFACTORING = "refactor the wallaby index so that it finds every single word of the documents of notes"
SENT: tuple[Call, ...] = (("memory_search", {**QUOKKA, "sessionId": "s"}),)
TRUSTED = tuple(("memory_validate", {"id": SPEC, "wasUseful": True}) for _ in range(5))
LINKED: tuple[Call, ...] = (
    ("memory_causal_link", {"sourceId": SPEC, "targetId": SPEC + 1, "relation": "caused"}),
    ("memory_causal_link", {"sourceId": SPEC + 1, "targetId": FIX, "relation": "enabled"}),
)
LINK = {"sourceId": 1, "targetId": 2, "relation": "supports"}
TASK = {"specFolder": "specs", "taskId": "t", "knowledgeScore": 40, "uncertaintyScore": 60, "contextScore": 50}
BEGUN: tuple[Call, ...] = (
    ("task_preflight", TASK),
    ("task_preflight", {**TASK, "taskId": "u", "sessionId": "s"}),
    ("task_preflight", {**TASK, "specFolder": "other"}),
)
SPOON: tuple[Call, ...] = (
    ("memory_update", {"id": FIX, "triggerPhrases": ["sacred spoon"]}),
    ("memory_update", {"id": WALLABY, "triggerPhrases": ["holy fork"]}),
)
PLACES = ("cave", "river", "grass", "island", "burrow")
MANY = saved(*((f"more/{place}.md", f"The quokka likes the cache in its {place}.") for place in PLACES))
TWINS = saved(*(
    (f"{folder}/{name}.md", f"# Twin\n\nThe same of {name}.")
    for name, folder in (("a", "docs"), ("a", "notes"), ("b", "notes"), ("b", "rules"))
))  # fmt: skip
RULES: tuple[Call, ...] = (
    ("memory_save", {"content": "Never on Fridays, whatever it is.", "filePath": "constitutional/friday.md"}),
    ("memory_save", {"content": "What the cache has to do for readers.", "filePath": "specs/1/spec.md"}),
    ("memory_index_scan", {}),
)
KEPT: tuple[Call, ...] = (
    ("checkpoint_create", {"name": "all"}),
    ("checkpoint_create", {"name": "cache", "specFolder": "docs/cache", "metadata": {"why": "a test"}}),
    ("memory_index_scan", {}),
)
DRAFT: tuple[Call, ...] = (("memory_save", {"content": "A draft of words.", "folder": "scratch"}),)
WORDS = {"content": "Some words of a note.", "filePath": "notes/n.md"}
DRY = {"content": "Some words.", "dryRun": True}
APPENDED = {"filePath": FIX, "content": "More.", "edit": "append"}
REMOVED: tuple[Call, ...] = (("memory_delete", {"id": "notes/n.md"}),)
CRITICAL: tuple[Call, ...] = (("memory_update", {"id": FIX, "importanceTier": "critical"}),)
FORGOTTEN: tuple[Call, ...] = (("checkpoint_delete", {"name": "a", "confirmName": "a"}),)
ALIASES = {"reportMode": "divergent_aliases"}
BUDGETS = both("meta.token_budget", 200, 5000)
MODES = both("data.mode", "focused", "deep")


def has_texts(answer: Any) -> bool:
    """Whether any row has a text, and not only the place where it stands."""
    return any("memory_text" in row for row in answer["data"]["results"])


def of_searches(asked: dict[str, Any]) -> dict[str, Case]:
    """What searches and contexts have in common."""
    return {
        "specFolder": Case(asked, (None, "docs/cache"), within("docs/cache/")),
        "limit": Case(asked, (3, 1), both("data.count", 3, 1)),
        "sessionId": Case(asked, (None, "s"), both(has_texts, True, False), SENT),
        "enableDedup": Case({**asked, "sessionId": "s"}, (True, False), both(has_texts, False, True), SENT),
        "anchors": Case(asked, (None, ["summary"]), only_summary),
        "onlyFitting": Case(asked, (False, True), lambda every, some: set(keys(every)) > set(keys(some))),
        "includeContent": Case({**asked, "limit": 2}, (False, True), both(lambda x: "ANCHOR" in texts(x), False, True)),
        "tokenBudget": Case(asked, (200, 5000), BUDGETS),
    }


CASES: dict[str, dict[str, Case]] = {
    "memory_search": of_searches(QUOKKA) | {
        "query": Case({}, ("quokka cache", "wallaby index"), both(lambda x: keys(x)[0], SPEC_KEY, WALLABY)),
        "concepts": Case({"query": "quokka"}, (None, ["quokka cache", "wallaby index"]),
            lambda a, b: keys(a) != keys(b)),
        "tier": Case(QUOKKA, (None, "important"), only(SPEC_KEY)),
        "contextType": Case(QUOKKA, (None, "research"), only("docs/cache/plan.md")),
        "mode": Case({"query": DEEP}, ("auto", "deep"), other_scores),
        "anchors: key": Case({"key": SPEC_KEY}, (None, ["summary"]), only_summary),
        "includeContent: budget": Case(QUOKKA, (False, True),
            lambda a, b: a["meta"]["token_budget"] < b["meta"]["token_budget"]),
        "key": Case(QUOKKA, (None, FIX), only(FIX)),
        "fromLine": Case({"key": FIX}, (None, 3), lambda a, b: len(texts(a)) > len(texts(b))),
        "explain": Case(QUOKKA, (False, True), one_says("data.results.0.steps", False, True)),
        "tokenBudget: key": Case({"key": FIX}, (200, 5000), BUDGETS),
        "deadlineMs": Case(QUOKKA, (0, 1e-6), both(lambda x: len(x["meta"]["degraded"]), 0, 1)),
        "whyNot": Case({"query": "wallaby", "limit": 2}, (WALLABY, FIX), tells("data.why_not.reason")),
        "intent": Case(QUOKKA, (None, "fix_bug"), both("data.intent", "understand", "fix_bug")),
        "autoDetectIntent": Case({"query": DEEP}, (True, False), both("data.intent", "fix_bug", None)),
        "includeConstitutional": Case(QUOKKA, (None, False),
            both(lambda x: "rules/always.md" in {row["key"] for row in x["data"]["results"]}, True, False)),
        # files of the fixture are old, what is saved now is HOT
        "minState": Case(QUOKKA, (None, "HOT"), only("more/cave.md"), MANY[:1]),
        "applyStateLimits": Case({"query": "quokka", "limit": 20}, (None, True),
            lambda a, b: len(keys(a)) > len(keys(b)) > 0, MANY),
        # nothing ages in the shipped pipeline, and no cross-encoder comes with it: test_wishes has others
        "useDecay": Case(QUOKKA, (None, False), same_scores),
        "applyLengthPenalty": Case(QUOKKA, (None, False), same_scores),
        "includeContiguity": Case(EXPLAINED, (None, True), takes_part("trial_contiguity", False, True)),
        "enableSessionBoost": Case(EXPLAINED, (None, True), takes_part("trial_session", False, True)),
        "enableCausalBoost": Case(EXPLAINED, (None, True), takes_part("trial_causal", False, True)),
        "rerank": Case(EXPLAINED, (None, False), takes_part("maxsim", True, False)),
        "bypassCache": Case(QUOKKA, (False, True), both("meta.cache_hit", True, False), (("memory_search", QUOKKA),)),
    },
    "memory_context": of_searches(ASKED) | {
        "input": Case({}, ("quokka cache", "wallaby index"), both(lambda x: keys(x)[0], SPEC_KEY, WALLABY)),
        "input: auto": Case({}, (LONG_QUESTION, LONG_REFACTORING), MODES),
        "input: question": Case({}, (f"why {LONG_REFACTORING}", LONG_REFACTORING), MODES),
        "mode": Case({"input": DEEP, "limit": 5}, ("quick", "deep"),
            lambda a, b: other_scores(a, b) and both("data.mode", "quick", "deep")(a, b)),
        "mode: pressed": Case({"input": DEEP, "limit": 5, "tokenUsage": 0.95}, ("quick", "deep"), other_scores),
        "mode: resumed": Case({"input": "continue"}, ("auto", "resume"),
            both("data.mode_reason", "the input asks to go on with earlier work", "requested")),
        "intent": Case({"input": "refactor the quokka cache and its wallaby index into one module"},
            ("find_spec", "add_feature"),
            lambda a, b: both("data.intent", "find_spec", "add_feature")(a, b) and MODES(a, b)),
        "tokenUsage": Case(ASKED, (0.1, 0.95), both("data.mode", "focused", "quick")),
    },
    "memory_save": {
        "filePath": Case({"dryRun": True}, (BUG, FIX), both("data.key", BUG, FIX)),
        "content": Case({"filePath": FIX, "edit": "append"}, (None, "More."), refused_first),
        "content: edit": Case({"filePath": FIX, "edit": "append"}, ("One word.", "Another."),
            both(lambda x: ["One word." in texts(x), "Another." in texts(x)], [True, False], [True, True]),
            look=read(FIX)),
        "content: new": Case({"dryRun": True}, ("# One\n\nSome words.", "# Two\n\nSome words."), tells("data.key")),
        "title": Case(DRY, ("One", "Two"), tells("data.key")),
        "folder": Case({**DRY, "title": "One"}, (None, "notes"), tells("data.key")),
        "tier": Case(WORDS, (None, "critical"), both(lambda x: rows(x)[0]["tier"], "normal", "critical"),
            between=REMOVED, look=read("notes/n.md")),
        "triggerPhrases": Case(DRY, ([" "], ["one"]), refused_first),
        "edit": Case({"filePath": FIX, "content": "More."}, (None, "append"), refused_first),
        "edit: how": Case({"filePath": FIX, "content": "Only this.", "section": "Fix"}, ("append", "replace"),
            both(lambda x: "To fix the search" in texts(x), True, False), look=read(FIX)),
        "section": Case({"filePath": FIX, "content": "More.", "edit": "replace"}, (None, "Fix"), refused_first),
        "force": Case({"filePath": "notes/broken.md"}, (None, True), both("data.outcome", None, "created")),
        "force: edit": Case({**APPENDED, "content": BROKEN}, (None, True), refused_first),
        "force: content": Case({"content": BROKEN}, (None, True), refused_first),
        "dryRun": Case({"filePath": "notes/new.md"}, (True, False), both("data.outcome", "dry_run", "created")),
        "dryRun: edit": Case(APPENDED, (True, False), both("data.outcome", "dry_run", "updated")),
        "dryRun: content": Case(WORDS, (True, False), both("data.outcome", "dry_run", "created")),
        "skipPreflight": Case({"filePath": "notes/broken.md"}, (None, True),
            lambda a, b: both("error.code", "E091", None)(a, b)
            and [b["data"][name] for name in ("outcome", "problems", "tokens")] == ["created", [], 0]),
        "asyncEmbedding": Case({"filePath": "notes/new.md", "force": True}, (True, False),
            both("data.embedding_pending", True, False)),
        "asyncEmbedding: content": Case(WORDS, (True, False), both("data.embedding_pending", True, False),
            between=REMOVED),
        "sessionId": Case({"filePath": "notes/new.md"}, ("s", "t"), attended("notes/new.md"), look=resumed),
        "sessionId: edit": Case(APPENDED, ("s", "t"), attended(FIX), look=resumed),
        "sessionId: content": Case(WORDS, ("s", "t"), attended("notes/n.md"), between=REMOVED, look=resumed),
    } | {
        f"{name}{way}": Case(shared, (None, [BUG]), both(linked, [], [(relation, BUG)]), between=between)
        for name, relation in (("supersedes", "supersedes"), ("relates_to", "supports"))
        for way, shared, between in (
            ("", {"filePath": FIX}, ()), (": edit", APPENDED, ()), (": content", WORDS, REMOVED),
        )
    },
    "memory_match_triggers": {
        "prompt": Case({}, ("a plain word", "the sacred spoon of tea"), both("data.count", 0, 1), SPOON),
        "limit": Case({"prompt": "sacred spoon, holy fork"}, (2, 1), both("data.count", 2, 1), SPOON),
        "session_id": Case({"prompt": "sacred spoon"}, (None, "s"), one_says("data.results.0.attention", False, True),
            SPOON),
        "turnNumber": Case({"prompt": "sacred spoon", "session_id": "s"}, (1, 50),
            lambda a, b: rows(a)[0]["attention"] == 0.0 < rows(b)[0]["attention"] < 0.5, SPOON),
        "include_cognitive": Case({"prompt": "sacred spoon"}, (True, False),
            one_says("data.results.0.state", True, False), SPOON),
        "include_cognitive: session": Case({"prompt": "sacred spoon", "session_id": "s"}, (True, False),
            one_says("data.results.0.attention", True, False), SPOON),
    },
    "memory_update": {
        "id": Case({"title": "Other"}, (1, SPEC_KEY), tells("data.key")),
        "title": Case({"id": 1, "importanceWeight": 0.2}, (None, "Other"), changes("title")),
        "triggerPhrases": Case({"id": 1, "importanceWeight": 0.2}, (None, ["other"]), changes("triggerPhrases")),
        "importanceWeight": Case({"id": 1, "title": "Other"}, (None, 0.2), changes("importanceWeight")),
        "importanceTier": Case({"id": 1, "title": "Other"}, (None, "critical"), changes("importanceTier")),
        # what it allows shows where no model embeds: below
        "allowPartialUpdate": Case({"id": 1, "title": "Other"}, (False, True),
            both("data.embedding_pending", False, False)),
    },
    "memory_delete": {
        "id": Case({"dryRun": True}, (FIX, BUG), gone([FIX], [BUG])),
        "specFolder": Case({"dryRun": True}, ("notes", "docs/index"), gone([BUG, FIX], [WALLABY])),
        "confirm": Case({"specFolder": "docs/index"}, (None, True), refused_first),
        "confirm: one": Case({"id": FIX}, (None, True), refused_first, CRITICAL),
        "confirm: undo": Case({"undo": "absent"}, (None, True), both("error.code", "E106", "E030")),
        "dryRun": Case({"specFolder": "docs/index"}, (False, True), refused_first),
        "dryRun: one": Case({"id": FIX}, (True, False), both(lambda x: FIX in keys(x), True, False),
            look=lambda _: ("memory_list", {})),
        "dryRun: undo": Case({"undo": "absent"}, (None, True), both("error.code", "E106", "E030")),
        "undo": Case({}, (None, "absent"), both("error.code", "E031", "E106")),
    },
    "memory_bulk_delete": {
        "tier": Case({"dryRun": True}, ("important", "temporary"), gone([SPEC_KEY], [])),
        "confirm": Case({"tier": "important"}, (None, True), refused_first),
        "specFolder": Case({"tier": "important", "dryRun": True}, (None, "notes"), gone([SPEC_KEY], [])),
        "olderThanDays": Case({"tier": "important", "dryRun": True}, (None, 99_000), gone([SPEC_KEY], [])),
        "skipCheckpoint": Case({"tier": "constitutional", "specFolder": "rules", "confirm": True}, (True, None),
            refused_first),
        "dryRun": Case({"tier": "important"}, (False, True), refused_first),
    },
    "memory_validate": {
        "id": Case({"wasUseful": True}, (SPEC, FIX), both("data.key", SPEC_KEY, FIX)),
        "wasUseful": Case({"id": SPEC}, (True, False), lambda a, b: a["data"]["confidence"] > b["data"]["confidence"]),
        "promote": Case({"id": SPEC, "wasUseful": True}, (None, True), both("data.tier", "important", "critical"),
            TRUSTED),
        "sessionId": Case({"id": SPEC, "wasUseful": True}, (None, "s"), tells("data.session")),
    },
    "memory_index_scan": {
        "specFolder": Case({"force": True}, ("docs/cache", ""), both(known, 2, 6)),
        "force": Case({}, (None, True), both("data.updated", 0, 1)),
        "incremental": Case({}, (None, False), both("data.updated", 0, 1)),
        "includeConstitutional": Case({}, (False, True), both(known, 9, 10), RULES),
        "includeSpecDocs": Case({}, (False, True), both(known, 9, 10), RULES),
    },
    "memory_list": {
        "limit": Case({}, (3, 1), both("data.count", 3, 1)),
        "offset": Case({"limit": 2}, (0, 2), lambda a, b: not set(keys(a)) & set(keys(b))),
        "offset: told": Case({"limit": 2}, (0, 2),
            both(lambda x: (x["data"]["offset"], x["hints"][0][-1]), (0, "2"), (2, "4"))),
        "specFolder": Case({}, (None, "docs/cache"), within("docs/cache/")),
        "sortBy": Case({}, ("created_at", "importance_weight"), lambda a, b: keys(a) != keys(b)),
        "includeChunks": Case({}, (False, True),
            both(lambda x: [row.get("kind") for row in x["data"]["memories"]].count("passage"), 0, 6)),
    },
    "memory_stats": {
        "limit": Case({}, (10, 1), both(lambda x: len(folders(x)), 4, 1)),
        "folderRanking": Case({}, ("count", "importance"), lambda a, b: folders(a)[0] == "docs/cache" != folders(b)[0]),
        "excludePatterns": Case({}, (None, ["^docs/", "^notes$"]),
            both(lambda x: (len(folders(x)), x["data"]["left_out"]["excluded"]), (4, 0), (1, 3))),
        "includeScores": Case({}, (False, True), one_says("data.folders.0.score", False, True)),
        "includeArchived": Case({}, (None, True), lambda a, b: set(folders(b)) - set(folders(a)) == {"scratch"}, DRAFT),
    },
    "memory_health": {
        "reportMode": Case({}, ("full", "divergent_aliases"),
            lambda a, b: "checks" in a["data"] and "aliases" in b["data"]),
        "limit": Case(ALIASES, (20, 1), both("data.count", 2, 1), TWINS),
        "specFolder": Case(ALIASES, (None, "docs"), both("data.count", 2, 1), TWINS),
    },
    "memory_drift_why": {
        "memoryId": Case({}, (SPEC, FIX), both("data.key", SPEC_KEY, FIX), LINKED),
        "maxDepth": Case({"memoryId": SPEC}, (1, 2), both("data.count", 1, 2), LINKED),
        "direction": Case({"memoryId": SPEC}, ("outgoing", "incoming"), both("data.count", 2, 0), LINKED),
        "relations": Case({"memoryId": SPEC}, (None, ["caused"]), both("data.count", 2, 1), LINKED),
        "includeMemoryDetails": Case({"memoryId": SPEC}, (True, False), one_says("data.memories", True, False), LINKED),
        "format": Case({"memoryId": SPEC}, ("text", "mermaid"),
            both(lambda x: x["data"].get("mermaid", "")[:12], "", "flowchart LR"), LINKED),
    },
    "memory_causal_link": {
        name: Case(LINK, values, tells(f"data.link.{field}")) for name, values, field in (
            ("sourceId", (SPEC + 1, BUG), "source"), ("targetId", (SPEC + 1, BUG), "target"),
            ("relation", ("caused", "enabled"), "relation"), ("strength", (0.25, 0.5), "strength"),
            ("evidence", ("one", "another"), "evidence"),
        )
    },
    "memory_causal_stats": {},
    "memory_causal_unlink": {"edgeId": Case({}, (1, 2), both("data.removed.id", 1, 2), LINKED)},
    "task_preflight": {
        name: Case(TASK, values, tells(f"data.{told}")) for name, values, told in (
            ("specFolder", ("specs", "other"), "specFolder"), ("taskId", ("t", "u"), "taskId"),
            ("knowledgeScore", (40, 41), "before.knowledge"), ("uncertaintyScore", (60, 61), "before.uncertainty"),
            ("contextScore", (50, 51), "before.context"), ("knowledgeGaps", (None, ["why"]), "knowledgeGaps"),
            ("sessionId", (None, "s"), "sessionId"),
        )
    },
    "task_postflight": {
        name: Case(TASK, values, tells(f"data.{told}"), BEGUN) for name, values, told in (
            ("specFolder", ("specs", "other"), "specFolder"), ("taskId", ("t", "u"), "taskId"),
            ("knowledgeScore", (40, 90), "band"), ("uncertaintyScore", (60, 10), "learning_index"),
            ("contextScore", (50, 51), "after.context"), ("gapsClosed", (None, ["why"]), "gapsClosed"),
            ("newGapsDiscovered", (None, ["when"]), "newGapsDiscovered"),
        )
    },
    "memory_get_learning_history": {
        "specFolder": Case({}, ("specs", "other"), both("data.count", 2, 1), BEGUN),
        "sessionId": Case({"specFolder": "specs"}, (None, "s"), both("data.count", 2, 1), BEGUN),
        "limit": Case({"specFolder": "specs"}, (10, 1), both("data.count", 2, 1), BEGUN),
        "onlyComplete": Case({"specFolder": "specs"}, (False, True), both("data.count", 2, 0), BEGUN),
        "includeSummary": Case({"specFolder": "specs"}, (True, False), tells("data.summary"), BEGUN),
    },
    "checkpoint_create": {
        "name": Case({}, ("a", "b"), both("data.checkpoint.name", "a", "b")),
        "specFolder": Case({"name": "a"}, (None, "docs/cache"), both("data.checkpoint.memories", 6, 2),
            between=FORGOTTEN),
        "metadata": Case({"name": "a"}, (None, {"why": "x"}), both("data.checkpoint.metadata", {}, {"why": "x"}),
            between=FORGOTTEN),
    },
    "checkpoint_list": {
        "specFolder": Case({}, (None, "notes"), both("data.count", 2, 1), KEPT),
        "limit": Case({}, (None, 1), both("data.count", 2, 1), KEPT),
    },
    "checkpoint_restore": {
        "name": Case({}, ("all", "cache"), both("data.set_back", 6, 2), KEPT),
        "clearExisting": Case({"name": "all"}, (False, True), both("data.removed", 0, 2), KEPT),
    },
    "checkpoint_delete": {
        "name": Case({"confirmName": "all"}, ("cache", "all"), both("data.deleted", None, "all"), KEPT),
        "confirmName": Case({"name": "all"}, ("cache", "all"), both("data.deleted", None, "all"), KEPT),
    },
}  # fmt: skip
IDS = {
    "memory_context": "T1", "memory_search": "T2", "memory_save": "T4", "memory_list": "T5", "memory_stats": "T6",
    "memory_health": "T7", "memory_match_triggers": "T3", "memory_update": "T8", "memory_delete": "T9",
    "memory_bulk_delete": "T11",
    "memory_validate": "T10", "memory_index_scan": "T22",
    "memory_drift_why": "T18", "memory_causal_link": "T19", "memory_causal_unlink": "T21",
    "task_preflight": "T16", "task_postflight": "T17", "memory_get_learning_history": "T23",
    "checkpoint_create": "T12", "checkpoint_list": "T13", "checkpoint_restore": "T14", "checkpoint_delete": "T15",
}  # fmt: skip


@pytest.fixture(scope="session")
def indexed_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that the product wrote, beside two files that it does not know, and one that changed without a trace in
    its time: for copies."""
    root = tmp_path_factory.mktemp("files")
    for number, (key, text) in enumerate(sorted(FILES.items())):
        file = write_file(root / key, text)
        os.utime(file, (1_700_000_000 + number,) * 2)
    with Memory.open(root / "m.db", root=root, environ={}, strict=True) as memory:
        memory.index([root])
    (root / "notes" / "new.md").write_text("# New\n\nA new note about nothing else.\n", encoding="utf-8")
    (root / "notes" / "broken.md").write_text(BROKEN, encoding="utf-8")
    changed = root / BUG
    times = changed.stat()
    changed.write_text(FILES[BUG] + "\nIt was mended.\n", encoding="utf-8")
    os.utime(changed, ns=(times.st_atime_ns, times.st_mtime_ns))
    return root


@pytest.fixture
def memory(indexed_files: Path, tmp_path: Path) -> Iterator[Memory]:
    shutil.copytree(indexed_files, tmp_path, dirs_exist_ok=True)
    note_as_read(tmp_path / "m.db", tmp_path / BUG, BUG)
    with Memory.open(tmp_path / "m.db", root=tmp_path, environ={}, strict=True) as opened:
        yield opened


@cache
def serving() -> tuple[Workspace, MemoryServer]:
    """A workspace and the server over it, built once: the schemas of all tools take longer than most calls."""
    workspace = Workspace(lambda create: Memory.open(create=create), settings())
    return workspace, build(workspace, warm_up=False, limits=ThreadLimits())


@cache
def schemas() -> dict[str, dict[str, Any]]:
    """The parameters of each tool with their schemas, as the server tells them to clients."""

    async def work() -> dict[str, dict[str, Any]]:
        async with Client(serving()[1]) as client:
            return {tool.name: tool.input_schema["properties"] for tool in (await client.list_tools()).tools}

    return anyio.run(work)


def published() -> dict[str, list[str]]:
    """The parameters of each tool."""
    return {tool: list(properties) for tool, properties in schemas().items()}


def answers(memory: Memory, calls: list[Call]) -> list[Answer]:
    """What the tools answer over this memory, asked by one client."""
    workspace, server = serving()
    workspace.answers.clear()
    workspace._opener, workspace._settings, workspace._memory = lambda create: memory, memory.session.settings, None

    async def work() -> list[Answer]:
        async with Client(server) as client:
            return [(await client.call_tool(*call)).structured_content or {} for call in calls]

    return anyio.run(work)


def answered(memory: Memory, tool: str, name: str, case: Case) -> tuple[Answer, Answer]:
    """Both answers of a case, or those to what is asked after either call."""
    calls, places = [*case.before], []
    for value, between in zip(case.values, (case.between, ()), strict=True):
        calls.append((tool, case.shared if value is None else {**case.shared, name: value}))
        calls += [case.look(value)] if case.look else []
        places.append(len(calls) - 1)
        calls += between
    given = answers(memory, calls)
    return given[places[0]], given[places[1]]


def not_allowed(schema: dict[str, Any]) -> Any:
    """A value that the schema of a parameter excludes."""
    for bound, beyond in (("maximum", 1), ("minimum", -1)):
        if bound in schema:
            return schema[bound] + beyond
    if "enum" in schema:
        return "no such choice"
    return "words" if schema["type"] in ("boolean", "number", "integer", "object") else [{}]


def test_every_published_parameter_has_a_case() -> None:
    assert {tool: set(names) for tool, names in published().items()} == {
        tool: {name.partition(":")[0] for name in cases} for tool, cases in CASES.items()
    }


def test_a_value_that_a_schema_excludes_is_refused_by_the_name_of_its_parameter(memory: Memory) -> None:
    calls = [
        (tool, {**CASES[tool][name].shared, name: not_allowed(schema)})
        for tool, properties in schemas().items()
        for name, schema in properties.items()
    ]
    names = [name for properties in schemas().values() for name in properties]

    for name, call, answer in zip(names, calls, answers(memory, calls), strict=True):
        assert f"'{name}" in answer.get("error", {"message": ""})["message"], (name, call, answer)


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        pytest.param(tool, name, marks=pytest.mark.requirement(f"{IDS[tool]}.parameters"))
        for tool, cases in CASES.items()
        for name in cases
    ],
)
@pytest.mark.usefixtures("patterns_here")
def test_a_parameter_does_what_it_says(tool: str, name: str, memory: Memory) -> None:
    case = CASES[tool][name]

    one, other = answered(memory, tool, name.partition(":")[0], case)

    assert case.differ(one, other), (one, other)


@pytest.mark.requirement("T28.chosen")
def test_what_a_session_reads_by_its_key_is_a_use_of_what_that_session_was_shown(memory: Memory) -> None:
    def uses(session: str) -> int:
        answers(memory, [("memory_search", {"key": SPEC_KEY, "sessionId": session})])
        memory.feedback.write()
        with EvaluationDatabase.open(evaluation_file(memory.session.database.path), create=False) as database:
            return database.counts()["uses"]

    answers(memory, [*SENT])

    assert [uses("t"), uses("s")] == [0, 1]


@pytest.mark.requirement("T1.parameters", "C17")
def test_a_full_context_searches_as_the_mode_that_it_names_does(memory: Memory) -> None:
    asked = {"input": DEEP, "limit": 5}
    with memory.using("default", {"expansion.modes": "[auto]"}) as expanding:
        pressed, quick = answers(
            expanding, [("memory_context", {**asked, **more}) for more in ({"tokenUsage": 0.95}, {"mode": "quick"})]
        )
        unpressed = expanding.search(DEEP, limit=5, deadline_ms=None)

    assert [answer["data"]["mode"] for answer in (pressed, quick)] == ["quick", "quick"]
    assert scores(pressed) == scores(quick)
    assert scores(pressed) != [(row.key, round(row.score, 4)) for row in unpressed.results], "or nothing is shown"


@pytest.mark.requirement("T8.parameters")
def test_a_partial_update_is_allowed_where_the_model_fails(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise SpeckitError("E001", "the model cannot be read")

    monkeypatch.setattr(StaticEmbedder, "pool_documents", fail)
    file = memory.session.settings.root / FIX
    before = file.read_text(encoding="utf-8")
    case = Case({"id": FIX, "title": "Other"}, (False, True), refused_first)

    refused, allowed = answered(memory, "memory_update", "allowPartialUpdate", case)

    assert refused["error"]["code"] == "E081"
    assert "nothing was changed" in refused["error"]["message"]
    assert allowed["data"]["embedding_pending"]
    assert any("vectors follow: a running server makes them" in hint for hint in allowed["hints"])
    assert allowed["data"]["was"] == {"title": "Fix"}
    assert "title: Other" in file.read_text(encoding="utf-8").replace('"', "") != before
