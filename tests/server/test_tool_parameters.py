"""Every parameter of every tool changes what it says it changes, through the server and the SDK's client.

Each case is a pair of calls that differ in one parameter alone. The parameters come from the schemas that the server
publishes: a new one fails until it has a case here, and a tool that drops one on its way fails in the case of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from speckit_memory.config.settings import settings
from speckit_memory.engine import Memory
from speckit_memory.server.app import build
from speckit_memory.server.worker_calls import ThreadLimits
from speckit_memory.server.workspace import Workspace

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
Answer = dict[str, Any]
Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """The arguments that a pair of calls shares, the values of the parameter in either call (None: left out), and what
    must hold of the two answers. `before` prepares the workspace by further calls; those `between` the pair make room
    for the second."""

    shared: dict[str, Any]
    values: tuple[Any, Any]
    differ: Callable[[Answer, Answer], bool]
    before: tuple[Call, ...] = ()
    between: tuple[Call, ...] = ()


def keys(answer: Answer) -> list[str]:
    """The results but the rules, which surface whatever is asked."""
    rows = answer["data"].get("results", answer["data"].get("memories", []))
    return [row["key"] for row in rows if row["key"] != "rules/always.md"]


def unproblematic(answer: Answer) -> bool:
    return (answer["data"]["problems"], answer["data"]["tokens"]) == ([], 0)


def folders(answer: Answer) -> list[str]:
    return [row["folder"] for row in answer["data"]["folders"]]


def passages(answer: Answer) -> list[Any]:
    return [row for row in answer["data"]["memories"] if row.get("kind") == "passage"]


def given_budgets(one: Answer, other: Answer) -> bool:
    return [answer["meta"]["token_budget"] for answer in (one, other)] == [200, 5000]


def inside(folder: str) -> Callable[[Answer, Answer], bool]:
    return lambda all_, some: {k.startswith(folder) for k in keys(some)} == {True} and set(keys(all_)) > set(keys(some))


def counts(first: int, second: int) -> Callable[[Answer, Answer], bool]:
    return lambda one, other: (one["data"]["count"], other["data"]["count"]) == (first, second)


def linked(name: str) -> Callable[[Answer, Answer], bool]:
    return lambda one, other: one["data"]["link"][name] != other["data"]["link"][name]


def texts(answer: Answer) -> str:
    return "".join(row.get("memory_text", "") for row in answer["data"]["results"])


def memory_id(key: str) -> int:
    """Ids are given in the order in which files are indexed."""
    return sorted(FILES).index(key) + 1


QUOKKA = {"query": "quokka cache"}
DEEP = "fix the search error in the pipeline config"
ASKED = {"input": "quokka cache"}
SPEC = memory_id("docs/cache/spec.md")
TRUSTED = tuple(("memory_validate", {"id": SPEC, "wasUseful": True}) for _ in range(5))
SENT: tuple[Call, ...] = (("memory_search", {**QUOKKA, "sessionId": "s"}),)

LINKED: tuple[Call, ...] = (
    ("memory_causal_link", {"sourceId": SPEC, "targetId": SPEC + 1, "relation": "caused"}),
    ("memory_causal_link", {"sourceId": SPEC + 1, "targetId": "notes/fix.md", "relation": "enabled"}),
)
FIXED = {"relation": "supports"}
TASK = {"specFolder": "specs", "taskId": "t"}
BEFORE = {**TASK, "knowledgeScore": 40, "uncertaintyScore": 60, "contextScore": 50}
BEGUN: tuple[Call, ...] = (
    ("task_preflight", BEFORE),
    ("task_preflight", {**BEFORE, "taskId": "u", "sessionId": "s"}),
    ("task_preflight", {**BEFORE, "specFolder": "other"}),
)


def tells(name: str) -> Callable[[Answer, Answer], bool]:
    return lambda one, other: one["data"].get(name) != other["data"].get(name)


SPOON: tuple[Call, ...] = (
    ("memory_update", {"id": "notes/fix.md", "triggerPhrases": ["sacred spoon"]}),
    ("memory_update", {"id": "docs/index/wallaby.md", "triggerPhrases": ["holy fork"]}),
)


def refused_first(one: Answer, other: Answer) -> bool:
    return "error" in one and "error" not in other


def other_keys(one: Answer, other: Answer) -> bool:
    return bool(one["data"]["key"] != other["data"]["key"])


def gone(first: list[str], second: list[str]) -> Callable[[Answer, Answer], bool]:
    return lambda *answers: [[row["key"] for row in each["data"]["memories"]] for each in answers] == [first, second]


def changes(name: str) -> Callable[[Answer, Answer], bool]:
    return lambda one, other: name not in one["data"]["changed"] and name in other["data"]["changed"]


def data(name: str, *told: Any) -> Callable[[Answer, Answer], bool]:
    """What both answers say under a name; None where it failed."""
    return lambda *answers: [answer["data"].get(name) if "data" in answer else None for answer in answers] == [*told]


MANY: tuple[Call, ...] = tuple(
    (
        "memory_save",
        {"filePath": f"more/{name}.md", "content": f"The quokka likes the cache in its {name}.", "force": True},
    )
    for name in ("cave", "river", "grass", "island", "burrow")
)
EXPLAINED = {**QUOKKA, "explain": True}


def runs(step: str, *told: bool) -> Callable[[Answer, Answer], bool]:
    """Whether a step took part in either search."""
    return lambda *both: [step in answer["data"]["timings_ms"]["steps"] for answer in both] == [*told]


KEPT: tuple[Call, ...] = (
    ("checkpoint_create", {"name": "all"}),
    ("checkpoint_create", {"name": "cache", "specFolder": "docs/cache", "metadata": {"why": "a test"}}),
    ("memory_index_scan", {}),
)
RULES: tuple[Call, ...] = (
    ("memory_save", {"content": "Never on Fridays, whatever it is.", "filePath": "constitutional/friday.md"}),
    ("memory_save", {"content": "What the cache has to do for readers.", "filePath": "specs/1/spec.md"}),
    ("memory_index_scan", {}),
)
ALIASES = {"reportMode": "divergent_aliases"}
TWINS: tuple[Call, ...] = tuple(
    ("memory_save", {"content": f"# Twin\n\nThe same of {pair}.", "filePath": f"{folder}/{pair}.md", "force": True})
    for pair, places in {"a": ("docs", "notes"), "b": ("notes", "rules")}.items()
    for folder in places
)
DRAFT: tuple[Call, ...] = (("memory_save", {"content": "A draft of words.", "folder": "scratch"}),)
FORGOTTEN: tuple[Call, ...] = (("checkpoint_delete", {"name": "a", "confirmName": "a"}),)

CASES: dict[str, dict[str, Case]] = {
    "memory_search": {
        "query": Case({}, ("quokka cache", "wallaby index"), lambda a, b: keys(a)[0] != keys(b)[0]),
        "concepts": Case(
            {"query": "quokka"}, (None, ["quokka cache", "wallaby index"]), lambda a, b: keys(a) != keys(b),
        ),
        "specFolder": Case(QUOKKA, (None, "docs/cache"), inside("docs/cache/")),
        "limit": Case(QUOKKA, (3, 1), counts(3, 1)),
        "tier": Case(QUOKKA, (None, "important"), lambda a, b: len(keys(a)) > 1 and keys(b) == ["docs/cache/spec.md"]),
        "contextType": Case(
            QUOKKA, (None, "research"), lambda a, b: len(keys(a)) > 1 and keys(b) == ["docs/cache/plan.md"]
        ),
        "mode": Case({"query": DEEP}, ("auto", "deep"), lambda a, b: scores(a) != scores(b)),
        "sessionId": Case(QUOKKA, (None, "s"), lambda a, b: bool(keys(a)) and not keys(b), SENT),
        "enableDedup": Case(
            {**QUOKKA, "sessionId": "s"}, (True, False), lambda a, b: not keys(a) and bool(keys(b)), SENT
        ),
        "anchors": Case(
            QUOKKA, (None, ["summary"]), lambda a, b: "many entries" in texts(a) and "many entries" not in texts(b)
        ),
        "includeContent": Case({**QUOKKA, "limit": 2}, (False, True), lambda a, b: len(texts(b)) > len(texts(a)) + 300),
        "key": Case(QUOKKA, (None, "notes/fix.md"), lambda a, b: len(keys(a)) > 1 and keys(b) == ["notes/fix.md"]),
        "fromLine": Case({"key": "notes/fix.md"}, (None, 3), lambda a, b: len(texts(a)) > len(texts(b))),
        "explain": Case(QUOKKA, (False, True), lambda a, b: ["steps" in rows(x)[0] for x in (a, b)] == [False, True]),
        "tokenBudget": Case(QUOKKA, (200, 5000), given_budgets),
        "deadlineMs": Case(QUOKKA, (0, 1e-6), lambda a, b: [len(x["meta"]["degraded"]) for x in (a, b)] == [0, 1]),
        "whyNot": Case(
            {"query": "wallaby", "limit": 2}, ("docs/index/wallaby.md", "notes/fix.md"),
            lambda a, b: a["data"]["why_not"]["reason"] != b["data"]["why_not"]["reason"],
        ),
        "intent": Case(QUOKKA, (None, "fix_bug"), data("intent", "understand", "fix_bug")),
        "autoDetectIntent": Case(
            {"query": DEEP}, (True, False), lambda a, b: [x["data"]["intent"] for x in (a, b)] == ["fix_bug", None]
        ),
        "includeConstitutional": Case(
            QUOKKA, (None, False),
            lambda a, b: ["rules/always.md" in {row["key"] for row in rows(x)} for x in (a, b)] == [True, False],
        ),
        # files of the fixture are old, what is saved now is HOT
        "minState": Case(
            QUOKKA, (None, "HOT"), lambda a, b: len(keys(a)) > 1 and keys(b) == ["more/cave.md"], MANY[:1]
        ),
        "applyStateLimits": Case(
            {"query": "quokka", "limit": 20}, (None, True), lambda a, b: len(keys(a)) > len(keys(b)) > 0, MANY
        ),
        # nothing ages in the shipped pipeline, and no cross-encoder comes with it: test_wishes has others
        "useDecay": Case(QUOKKA, (None, False), lambda a, b: bool(keys(a)) and scores(a) == scores(b)),
        "applyLengthPenalty": Case(QUOKKA, (None, False), lambda a, b: bool(keys(a)) and scores(a) == scores(b)),
        "includeContiguity": Case(EXPLAINED, (None, True), runs("trial_contiguity", False, True)),
        "enableSessionBoost": Case(EXPLAINED, (None, True), runs("trial_session", False, True)),
        "enableCausalBoost": Case(EXPLAINED, (None, True), runs("trial_causal", False, True)),
        "rerank": Case(EXPLAINED, (None, False), runs("maxsim", True, False)),
        "bypassCache": Case(
            QUOKKA, (False, True), lambda a, b: [x["meta"]["cache_hit"] for x in (a, b)] == [True, False],
            (("memory_search", QUOKKA),),
        ),
    },
    "memory_context": {
        "input": Case({}, ("quokka cache", "wallaby index"), lambda a, b: keys(a)[0] != keys(b)[0]),
        "mode": Case(
            {"input": DEEP, "limit": 5}, ("quick", "deep"),
            lambda a, b: scores(a) != scores(b) and modes(a, b) == ["quick", "deep"],
        ),
        "specFolder": Case(ASKED, (None, "docs/cache"), inside("docs/cache/")),
        "limit": Case(ASKED, (3, 1), counts(3, 1)),
        "sessionId": Case(ASKED, (None, "s"), lambda a, b: bool(keys(a)) and not keys(b), SENT),
        "enableDedup": Case(
            {**ASKED, "sessionId": "s"}, (True, False), lambda a, b: not keys(a) and bool(keys(b)), SENT
        ),
        "anchors": Case(
            ASKED, (None, ["summary"]), lambda a, b: "many entries" in texts(a) and "many entries" not in texts(b)
        ),
        "includeContent": Case({**ASKED, "limit": 2}, (False, True), lambda a, b: len(texts(b)) > len(texts(a)) + 300),
        "tokenBudget": Case(ASKED, (200, 5000), given_budgets),
        "intent": Case(
            {"input": "refactor the quokka cache and its wallaby index into one module"}, ("find_spec", "add_feature"),
            lambda a, b: data("intent", "find_spec", "add_feature")(a, b) and modes(a, b) == ["focused", "deep"],
        ),
        "tokenUsage": Case(ASKED, (0.1, 0.95), lambda a, b: modes(a, b) == ["focused", "quick"]),
    },
    "memory_save": {
        "filePath": Case(
            {"dryRun": True}, ("notes/bug.md", "notes/fix.md"),
            lambda a, b: [x["data"]["key"] for x in (a, b)] == ["notes/bug.md", "notes/fix.md"],
        ),
        "content": Case({"filePath": "notes/fix.md", "edit": "append"}, (None, "More."), refused_first),
        "title": Case({"content": "Some words.", "dryRun": True}, ("One", "Two"), other_keys),
        "folder": Case({"content": "Some words.", "title": "One", "dryRun": True}, (None, "notes"), other_keys),
        "tier": Case(
            {"content": "Words that say much.", "filePath": "notes/n.md"}, (None, "critical"),
            # the second finds the file of the first; what a tier does shows in test_parameter_branches
            lambda a, b: a["data"]["key"] == "notes/n.md" and b["error"]["code"] == "E101",
        ),
        "triggerPhrases": Case({"content": "Some words.", "dryRun": True}, ([" "], ["one"]), refused_first),
        "edit": Case({"filePath": "notes/fix.md", "content": "More."}, (None, "append"), refused_first),
        "section": Case(
            {"filePath": "notes/fix.md", "content": "More.", "edit": "replace"}, (None, "Fix"), refused_first
        ),
        "force": Case(
            {"filePath": "notes/broken.md"}, (None, True),
            lambda a, b: "error" in a and b["data"]["outcome"] == "created",
        ),
        "dryRun": Case(
            {"filePath": "notes/new.md"}, (True, False),
            lambda a, b: [x["data"]["outcome"] for x in (a, b)] == ["dry_run", "created"],
        ),
        "skipPreflight": Case(
            {"filePath": "notes/broken.md"}, (None, True),
            lambda a, b: a["error"]["code"] == "E091" and b["data"]["outcome"] == "created" and unproblematic(b),
        ),
        "asyncEmbedding": Case(
            {"filePath": "notes/new.md", "force": True}, (True, False),
            lambda a, b: [x["data"]["embedding_pending"] for x in (a, b)] == [True, False],
        ),
        "sessionId": Case(
            {"filePath": "notes/bug.md"}, ("", "s"),
            # what it does shows when the session is resumed: test_parameter_branches
            lambda a, b: [x["data"]["outcome"] for x in (a, b)] == ["updated", "unchanged"],
        ),
    },
    "memory_match_triggers": {
        "prompt": Case({}, ("a plain word", "the sacred spoon of tea"), counts(0, 1), SPOON),
        "limit": Case({"prompt": "sacred spoon, holy fork"}, (2, 1), counts(2, 1), SPOON),
        "session_id": Case({"prompt": "sacred spoon"}, (None, "s"), lambda a, b: "attention" in rows(b)[0], SPOON),
        "turnNumber": Case(
            {"prompt": "sacred spoon", "session_id": "s"}, (1, 50),
            lambda a, b: a["data"]["results"][0]["attention"] == 0.0 < b["data"]["results"][0]["attention"] < 0.5,
            SPOON,
        ),
        "include_cognitive": Case(
            {"prompt": "sacred spoon"}, (True, False), lambda a, b: "state" in rows(a)[0] and "state" not in rows(b)[0],
            SPOON,
        ),
    },
    "memory_update": {
        "id": Case({"title": "Other"}, (1, "docs/cache/spec.md"), other_keys),
        "title": Case({"id": 1, "importanceWeight": 0.2}, (None, "Other"), changes("title")),
        "triggerPhrases": Case({"id": 1, "importanceWeight": 0.2}, (None, ["other"]), changes("triggerPhrases")),
        "importanceWeight": Case({"id": 1, "title": "Other"}, (None, 0.2), changes("importanceWeight")),
        "importanceTier": Case({"id": 1, "title": "Other"}, (None, "critical"), changes("importanceTier")),
        "allowPartialUpdate": Case(
            {"id": 1, "title": "Other"}, (False, True),
            # what it allows shows where no model embeds: test_parameter_branches
            lambda a, b: [x["data"]["embedding_pending"] for x in (a, b)] == [False, False],
        ),
    },
    "memory_delete": {
        "id": Case({"dryRun": True}, ("notes/fix.md", "notes/bug.md"), gone(["notes/fix.md"], ["notes/bug.md"])),
        "specFolder": Case(
            {"dryRun": True}, ("notes", "docs/index"),
            gone(["notes/bug.md", "notes/fix.md"], ["docs/index/wallaby.md"]),
        ),
        "confirm": Case({"specFolder": "docs/index"}, (None, True), refused_first),
        "dryRun": Case({"specFolder": "docs/index"}, (False, True), refused_first),
        "undo": Case({}, (None, "absent"), lambda a, b: [x["error"]["code"] for x in (a, b)] == ["E031", "E106"]),
    },
    "memory_bulk_delete": {
        "tier": Case({"dryRun": True}, ("important", "temporary"), gone(["docs/cache/spec.md"], [])),
        "confirm": Case({"tier": "important"}, (None, True), refused_first),
        "specFolder": Case({"tier": "important", "dryRun": True}, (None, "notes"), gone(["docs/cache/spec.md"], [])),
        "olderThanDays": Case({"tier": "important", "dryRun": True}, (None, 99_000), gone(["docs/cache/spec.md"], [])),
        "skipCheckpoint": Case(
            {"tier": "constitutional", "specFolder": "rules", "confirm": True}, (True, None), refused_first
        ),
        "dryRun": Case({"tier": "important"}, (False, True), refused_first),
    },
    "memory_validate": {
        "id": Case({"wasUseful": True}, (SPEC, "notes/fix.md"), data("key", "docs/cache/spec.md", "notes/fix.md")),
        "wasUseful": Case({"id": SPEC}, (True, False), lambda a, b: a["data"]["confidence"] > b["data"]["confidence"]),
        "promote": Case(
            {"id": SPEC, "wasUseful": True}, (None, True),
            lambda a, b: [x["data"]["tier"] for x in (a, b)] == ["important", "critical"], TRUSTED,
        ),
        "sessionId": Case({"id": SPEC, "wasUseful": True}, (None, "s"), tells("session")),
    },
    "memory_index_scan": {
        "specFolder": Case({"force": True}, ("docs/cache", ""), lambda a, b: [known(x) for x in (a, b)] == [2, 6]),
        "force": Case({}, (None, True), lambda a, b: updated(a, b) == [0, 1]),
        "incremental": Case({}, (None, False), lambda a, b: updated(a, b) == [0, 1]),
        "includeConstitutional": Case({}, (False, True), lambda a, b: known(b) - known(a) == 1, RULES),
        "includeSpecDocs": Case({}, (False, True), lambda a, b: known(b) - known(a) == 1, RULES),
    },
    "memory_list": {
        "limit": Case({}, (3, 1), counts(3, 1)),
        "offset": Case({"limit": 2}, (0, 2), lambda a, b: not set(keys(a)) & set(keys(b))),
        "specFolder": Case({}, (None, "docs/cache"), inside("docs/cache/")),
        "sortBy": Case({}, ("created_at", "importance_weight"), lambda a, b: keys(a) != keys(b)),
        "includeChunks": Case({}, (False, True), lambda a, b: [len(passages(x)) for x in (a, b)] == [0, 6]),
    },
    "memory_stats": {
        "limit": Case({}, (10, 1), lambda a, b: [len(x["data"]["folders"]) for x in (a, b)] == [4, 1]),
        "folderRanking": Case({}, ("count", "importance"), lambda a, b: folders(a)[0] == "docs/cache" != folders(b)[0]),
        "excludePatterns": Case(
            {}, (None, ["^docs/", "^notes$"]),
            lambda a, b: folders(b) == ["rules"] and [x["data"]["left_out"]["excluded"] for x in (a, b)] == [0, 3],
        ),
        "includeScores": Case(
            {}, (False, True), lambda a, b: ["score" in x["data"]["folders"][0] for x in (a, b)] == [False, True]
        ),
        "includeArchived": Case({}, (None, True), lambda a, b: set(folders(b)) - set(folders(a)) == {"scratch"}, DRAFT),
    },
    "memory_health": {
        "reportMode": Case(
            {}, ("full", "divergent_aliases"), lambda a, b: "checks" in a["data"] and "aliases" in b["data"]
        ),
        "limit": Case(ALIASES, (20, 1), counts(2, 1), TWINS),
        "specFolder": Case(ALIASES, (None, "docs"), counts(2, 1), TWINS),
    },
    "memory_drift_why": {
        "memoryId": Case({}, (SPEC, "notes/fix.md"), lambda a, b: a["data"]["key"] != b["data"]["key"], LINKED),
        "maxDepth": Case({"memoryId": SPEC}, (1, 2), counts(1, 2), LINKED),
        "direction": Case({"memoryId": SPEC}, ("outgoing", "incoming"), counts(2, 0), LINKED),
        "relations": Case({"memoryId": SPEC}, (None, ["caused"]), counts(2, 1), LINKED),
        "includeMemoryDetails": Case(
            {"memoryId": SPEC}, (True, False), lambda a, b: ["memories" in x["data"] for x in (a, b)] == [True, False],
            LINKED,
        ),
        "format": Case(
            {"memoryId": SPEC}, ("text", "mermaid"),
            lambda a, b: "mermaid" not in a["data"] and b["data"]["mermaid"].startswith("flowchart LR"), LINKED,
        ),
    },
    "memory_causal_link": {
        "sourceId": Case({**FIXED, "targetId": SPEC}, (SPEC + 1, "notes/bug.md"), linked("source")),
        "targetId": Case({**FIXED, "sourceId": SPEC}, (SPEC + 1, "notes/bug.md"), linked("target")),
        "relation": Case({"sourceId": 1, "targetId": 2}, ("caused", "enabled"), linked("relation")),
        "strength": Case({"sourceId": 1, "targetId": 2, **FIXED}, (0.25, 0.5), linked("strength")),
        "evidence": Case({"sourceId": 1, "targetId": 2, **FIXED}, ("one", "another"), linked("evidence")),
    },
    "memory_causal_stats": {},
    "memory_causal_unlink": {
        "edgeId": Case({}, (1, 2), lambda a, b: [x["data"]["removed"]["id"] for x in (a, b)] == [1, 2], LINKED)
    },
    "task_preflight": {
        "specFolder": Case(BEFORE, ("specs", "other"), tells("specFolder")),
        "taskId": Case(BEFORE, ("t", "u"), tells("taskId")),
        "knowledgeScore": Case(BEFORE, (40, 41), tells("before")),
        "uncertaintyScore": Case(BEFORE, (60, 61), tells("before")),
        "contextScore": Case(BEFORE, (50, 51), tells("before")),
        "knowledgeGaps": Case(BEFORE, (None, ["why"]), tells("knowledgeGaps")),
        "sessionId": Case(BEFORE, (None, "s"), tells("sessionId")),
    },
    "task_postflight": {
        "specFolder": Case(BEFORE, ("specs", "other"), tells("specFolder"), BEGUN),
        "taskId": Case(BEFORE, ("t", "u"), tells("taskId"), BEGUN),
        "knowledgeScore": Case(BEFORE, (40, 90), tells("band"), BEGUN),
        "uncertaintyScore": Case(BEFORE, (60, 10), tells("learning_index"), BEGUN),
        "contextScore": Case(BEFORE, (50, 51), tells("after"), BEGUN),
        "gapsClosed": Case(BEFORE, (None, ["why"]), tells("gapsClosed"), BEGUN),
        "newGapsDiscovered": Case(BEFORE, (None, ["when"]), tells("newGapsDiscovered"), BEGUN),
    },
    "memory_get_learning_history": {
        "specFolder": Case({}, ("specs", "other"), counts(2, 1), BEGUN),
        "sessionId": Case({"specFolder": "specs"}, (None, "s"), counts(2, 1), BEGUN),
        "limit": Case({"specFolder": "specs"}, (10, 1), counts(2, 1), BEGUN),
        "onlyComplete": Case({"specFolder": "specs"}, (False, True), counts(2, 0), BEGUN),
        "includeSummary": Case({"specFolder": "specs"}, (True, False), tells("summary"), BEGUN),
    },
    "checkpoint_create": {
        "name": Case({}, ("a", "b"), lambda a, b: [x["data"]["checkpoint"]["name"] for x in (a, b)] == ["a", "b"]),
        "specFolder": Case(
            {"name": "a"}, (None, "docs/cache"),
            lambda a, b: [x["data"]["checkpoint"]["memories"] for x in (a, b)] == [6, 2], between=FORGOTTEN,
        ),
        "metadata": Case(
            {"name": "a"}, (None, {"why": "x"}),
            lambda a, b: ["metadata" in x["data"]["checkpoint"] for x in (a, b)] == [False, True], between=FORGOTTEN,
        ),
    },
    "checkpoint_list": {
        "specFolder": Case({}, (None, "notes"), data("count", 2, 1), KEPT),
        "limit": Case({}, (None, 1), data("count", 2, 1), KEPT),
    },
    "checkpoint_restore": {
        "name": Case({}, ("all", "cache"), data("set_back", 6, 2), KEPT),
        "clearExisting": Case({"name": "all"}, (False, True), data("removed", 0, 2), KEPT),
    },
    "checkpoint_delete": {
        "name": Case({"confirmName": "all"}, ("cache", "all"), data("deleted", None, "all"), KEPT),
        "confirmName": Case({"name": "all"}, ("cache", "all"), data("deleted", None, "all"), KEPT),
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


def rows(answer: Answer) -> list[Any]:
    found: list[Any] = answer["data"]["results"]
    return found


def scores(answer: Answer) -> list[tuple[str, float]]:
    return [(row["key"], row["score"]) for row in rows(answer)]


def modes(*answers: Answer) -> list[str]:
    return [answer["data"]["mode"] for answer in answers]


def known(answer: Answer) -> int:
    return int(answer["data"]["updated"] + answer["data"]["unchanged"])


def updated(*answers: Answer) -> list[int]:
    return [answer["data"]["updated"] for answer in answers]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A store that the product wrote, beside two files that it does not know, and one that changed without a trace in
    its time."""
    for number, (key, text) in enumerate(sorted(FILES.items())):
        file = tmp_path / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        os.utime(file, (1_700_000_000 + number,) * 2)
    with Memory.open(tmp_path / "m.db", root=tmp_path, environ={}, strict=True) as opened:
        opened.index([tmp_path])
        (tmp_path / "notes" / "new.md").write_text("# New\n\nA new note about nothing else.\n", encoding="utf-8")
        (tmp_path / "notes" / "broken.md").write_text("# Broken\n\n<!-- ANCHOR:open -->\nNo end.\n", encoding="utf-8")
        changed = tmp_path / "notes" / "bug.md"
        times = changed.stat()
        changed.write_text(FILES["notes/bug.md"] + "\nIt was mended.\n", encoding="utf-8")
        os.utime(changed, ns=(times.st_atime_ns, times.st_mtime_ns))
        yield opened


def published() -> dict[str, list[str]]:
    """The parameters of each tool, as the server tells them to clients."""

    async def work() -> dict[str, list[str]]:
        async with Client(
            build(
                Workspace(lambda create: Memory.open(create=create), settings()),
                warm_up=False,
                limits=ThreadLimits(),
            )
        ) as client:
            return {tool.name: list(tool.input_schema["properties"]) for tool in (await client.list_tools()).tools}

    return anyio.run(work)


def answers(memory: Memory, calls: list[Call]) -> list[Answer]:
    async def work() -> list[Answer]:
        server = build(Workspace(lambda create: memory, memory.settings), warm_up=False, limits=ThreadLimits())
        async with Client(server) as client:
            return [(await client.call_tool(*call)).structured_content or {} for call in calls]

    return anyio.run(work)


def test_every_published_parameter_has_a_case() -> None:
    assert {tool: sorted(names) for tool, names in published().items()} == {
        tool: sorted(cases) for tool, cases in CASES.items()
    }


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        pytest.param(tool, name, marks=pytest.mark.requirement(f"{IDS[tool]}.parameters"))
        for tool, cases in CASES.items()
        for name in cases
    ],
)
def test_a_parameter_does_what_it_says(tool: str, name: str, memory: Memory) -> None:
    case = CASES[tool][name]
    pair = [(tool, case.shared if value is None else {**case.shared, name: value}) for value in case.values]

    one, *_, other = answers(memory, [*case.before, pair[0], *case.between, pair[1]])[len(case.before) :]

    assert case.differ(one, other), (one, other)
