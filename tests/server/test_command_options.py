"""Every option and argument of every command changes what it says it changes, through the command line.

Each case is a pair of command lines that differ in it alone. The parameters come from the commands themselves: a new
one fails until it has a case. Of commands that measure for long or serve for ever, what they set to work is compared:
the work itself has tests of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest

from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation import ablation, calibration, tokens, tuning
from speckit_memory.evaluation import replay as replaying
from speckit_memory.evaluation import run as measuring
from speckit_memory.evaluation.comparing import baseline, compare, gate, good_enough, sensitivity
from speckit_memory.evaluation.judging import cases
from speckit_memory.evaluation.made_queries import run as making
from speckit_memory.memory.indexing import Source
from speckit_memory.memory.indexing.embedders.pulled import fetching
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import Scoring, Snapshot, StoredEvaluation
from speckit_memory.server import http, stdio
from speckit_memory.server.cli import ROOT, run
from speckit_memory.server.commands import demo, flags_audit, flags_demote, flags_promote

WORK = {
    "tune": (tuning, "tune"), "calibrate": (calibration, "calibrate"),
    "eval run": (measuring, "run"), "eval tokens": (tokens, "measure_tokens"), "eval ablate": (ablation, "ablate"),
    "compare": (compare, "compare_pipelines"), "runs": (compare, "compare_runs"), "gate": (gate, "gate"),
    "good enough": (good_enough, "good_enough"), "baseline": (baseline, "baseline"),
    "sensitivity": (sensitivity, "sensitivity"), "judge": (cases, "of_source"),
    "judge shadows": (cases, "of_experiment"),
    "replay": (replaying, "replay"),
    "audit": (flags_audit, "audit"),
    "promote": (flags_promote, "promote"), "demote": (flags_demote, "demote"), "make-queries": (making, "make_queries"),
    "pull": (fetching, "fetch"), "stdio": (stdio, "serve_stdio"), "http": (http, "serve_http"), "demo": (demo, "_open"),
}  # fmt: skip
"""What the long commands set to work, by the name under which its arguments are kept."""


@dataclass
class Told:
    """What one command line said and did: its status, its words, and the arguments of the work that it set going."""

    status: int
    out: str
    work: dict[str, Any] = field(default_factory=dict)

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON document."""
        return json.loads(self.out)


Differ = Callable[[Told, Told], bool]


def said(one: Told, other: Told) -> bool:
    return one.status == other.status == 0 and one.out != other.out


def document(one: Told, other: Told) -> bool:
    return not one.out.lstrip().startswith(("{", "[")) and bool(other.json)


def given(operation: str, name: str) -> Differ:
    """Both succeed, and hand this argument to an operation of the memory with different values."""
    return lambda one, other: (
        one.status == other.status == 0 and one.work[operation][name] != other.work[operation][name]
    )


def tells(*path: str) -> Differ:
    """Both succeed, and what stands at this place of their documents differs."""

    def at(told: Told) -> Any:
        found = told.json
        for name in path:
            found = found.get(name)
        return found

    return lambda one, other: one.status == other.status == 0 and at(one) != at(other)


def at_work(one: Told, other: Told) -> bool:
    return one.work != other.work and one.work.keys() == other.work.keys() != set()


def at_work_elsewhere(one: Told, other: Told) -> bool:
    return one.work.keys() != other.work.keys() and set() not in (one.work.keys(), other.work.keys())


def ends(first: int, second: int) -> Differ:
    return lambda one, other: (one.status, other.status) == (first, second)


def keys(told: Told) -> list[str]:
    return [row["key"] for row in told.json["results"]]


def listed(told: Told) -> int:
    return len(told.json["memories"])


def attention(told: Told) -> float:
    found: float = told.json["results"][0]["attention"]
    return found


def limits(told: Told) -> set[int]:
    """How many hits the channels are asked for that a router chose."""
    return {channel["limit"] for channel in told.json["plan"]["channels"] if channel["asked"]}


ROUTING = """\
pipeline: routed
candidates:
  understand:
    - {use: complexity}
    - use: router
      simple: {channels: [vector, bm25], limit: 5}
      moderate: {channels: [vector, bm25]}
      complex: {channels: [vector, bm25]}
  channels: [{use: vector}, {use: bm25}]
  recover: []
fusion: [{use: z_score}]
rerank: []
annotate: []
"""
SEARCH = ["search", "rank fusion", "--json"]
PROMOTE, DEMOTE = ["flags", "promote", "SPECKIT_RSF_FUSION"], ["flags", "demote", "SPECKIT_RSF_FUSION"]
REPORT = ["shadow", "report"]
PLAN = ["pipeline", "plan", "rank fusion", "--json"]
ROUTED = [*PLAN, "--pipeline", "routed.yaml"]
DRAFT = ["save", "--content", "Some words to keep.", "--dry-run"]
TEXT = ["save", "docs/fusion.md", "--content", "More words."]
BROKEN = ["save", "docs/broken.md", "--content", "# Broken\n\n<!-- ANCHOR:open -->\nNo end."]
UPDATE = ["update", "docs/fusion.md", "--weight", "0.25"]
GO = ["delete", "--folder"]
TIER = ["delete", "--tier", "normal", "--dry-run"]
SHOW = ["pipeline", "show"]
LINEAGE = ["lineage", "docs/tone.md"]
LINK = ["links", "add", "docs/tone.md", "supports", "docs/cjk.md"]
LINKED = ["links", "history"]
STATS = ["stats", "--json"]
LIST = ["list", "--json"]
MATCH, FUSED = ["match", "tell me of reciprocal rank fusion", "--json"], ["docs/fusion.md"]
JUDGED = ["validate", "docs/tone.md", "--useful", "--json"]
PULL = ["model", "pull", "fastembed:BAAI/bge-small-en-v1.5"]
USE = ["model", "use", "bundled"]
OWN_TUNE = ["pipeline", "tune", "bm25", "--own", "--out", "out.yaml"]
TUNE = ["pipeline", "tune", "bm25", "--dataset", "one", "--out", "out.yaml"]
OWN_CALIBRATE = ["pipeline", "calibrate", "default", "--own", "--out", "out.yaml"]
CALIBRATE = ["pipeline", "calibrate", "default", "--dataset", "one", "--out", "out.yaml"]
TOKENS = ["eval", "tokens", "--dataset", "one"]
RUN, ABLATE = ["eval", "run", "--dataset", "one"], ["eval", "ablate", "--dataset", "one"]
COMPARE = ["eval", "compare", "--dataset", "one"]
RUNS = ["eval", "compare", "--run-file", "one.run", "--qrels", "one.txt"]
GATE = ["eval", "gate", "--dataset", "one", "--against", "rrf"]
BASELINE = ["eval", "baseline", "--dataset", "one"]
JUDGE = ["eval", "judge", "--dataset", "one", "--pipeline", "rrf"]
SENSITIVITY = ["eval", "sensitivity", "--dataset", "one"]
EXPORT = ["export", "out", "--json"]
IMPORT = ["import", "more", "--json"]
CHECKPOINTS = ["checkpoint", "list"]
RESTORE = ["checkpoint", "restore"]
FORGET = ["learned", "forget", "docs/tone.md"]
JUDGEMENTS = ["learned", "judgements"]
TAKE_BACK = ["learned", "undo"]
OTHER_DB = ["--db", "elsewhere/memory.db"]
MADE = ["eval", "make-queries", "--dataset", "one", "--out", "made"]
REMOVE = ["graph", "remove", "--by", "entities"]
HTTP = ["serve", "--transport", "http"]
SECOND = ["--dataset", "two"]
SET = ["--set", "bm25.b=0.1"]
BM25 = ["--pipeline", "bm25"]
SCORES = ["--knowledge", "40", "--uncertainty", "60", "--context", "50", "--json"]
TASK_BEGUN = ["task", "preflight", "specs", "t", *SCORES]
TASK_DONE = ["task", "postflight", "specs", "t1", *SCORES]
OTHER_DONE = ["task", "postflight", "specs", "t2", *SCORES]
TASKS = ["task", "history", "specs", "--json"]
REPLAY = ["eval", "replay", *BM25]
SCORINGS = ["eval", "scorings"]
HISTORY = ["eval", "history"]

CASES: dict[str, dict[str, tuple[list[str], list[str], Differ]]] = {
    "demo": {
        "--pipeline": (["demo"], ["demo", *BM25], at_work),
        "--set": (["demo"], ["demo", *SET], at_work),
        "--keep": (["demo"], ["demo", "--keep", "kept.db"], at_work),
        "--html": (
            ["demo", "--json", "--html", "page.html"],
            ["demo", "--json", "--html", "."],  # which is a folder
            lambda a, b: "E014" not in a.out and "E014" in b.out,
        ),
        "--json": (
            ["demo"],
            ["demo", "--json"],
            lambda a, b: not a.work["demo"][0].as_json and b.work["demo"][0].as_json,
        ),
    },
    "init": {
        "--write": (
            ["init", "--json"],
            ["init", "--json", "--write"],
            lambda a, b: (
                ".speckit/config.yaml" in b.json["created"] and ".speckit/config.yaml" not in a.json["created"]
            ),
        ),
        "--client": (
            ["init", "--json"],
            ["init", "--json", "--client", "zed"],
            lambda a, b: a.json["clients"] == [] and [one["name"] for one in b.json["clients"]] == ["zed"],
        ),
        "--json": (["init"], ["init", "--json"], document),
    },
    "index": {
        "--forget": (
            ["index", "docs/tone.md", "--json"],
            ["index", "docs/tone.md", "--json", "--forget"],
            lambda a, b: "docs/tone.md" in a.json["sources"] and "docs/tone.md" not in b.json["sources"],
        ),
        "paths": (["index", "docs"], ["index", "docs/storage"], said),
        "--force": (
            ["index", "docs", "--json"],
            ["index", "docs", "--json", "--force"],
            lambda a, b: [t.json["updated"] for t in (a, b)] == [[], ["docs/tone.md"]],
        ),
        "--dry-run": (
            ["index", "more", "--json", "--dry-run"],
            ["index", "more", "--json"],
            lambda a, b: a.json["created"] == b.json["created"] != [],
        ),
        "--watch": (["index", "docs", "--dry-run"], ["index", "docs", "--dry-run", "--watch"], ends(0, 2)),
        "--db": (
            ["index", "docs", "--json"],
            ["index", "docs", "--json", "--db", "other.db"],
            lambda a, b: (a.json["created"], len(b.json["created"])) == ([], 6),
        ),
        "--json": (["index", "docs"], ["index", "docs", "--json"], document),
    },
    "search": {
        "query": (SEARCH, ["search", "quokka cache", "--json"], lambda a, b: keys(a)[0] != keys(b)[0]),
        "--shadow": (SEARCH, [*SEARCH, "--shadow", "bm25"], lambda a, b: {"shadows"} == b.json.keys() - a.json.keys()),
        "--verbose": (SEARCH[:-1], [*SEARCH[:-1], "--verbose"], said),
        "--limit": (SEARCH, [*SEARCH, "--limit", "1"], lambda a, b: len(keys(a)) > len(keys(b)) == 1),
        "--folder": (
            SEARCH,
            [*SEARCH, "--folder", "docs/storage"],
            lambda a, b: {k.rpartition("/")[0] for k in keys(b)} == {"docs/storage"} and len(keys(a)) > len(keys(b)),
        ),
        "--mode": (
            ["search", "fix the search error", "--json"],
            ["search", "fix the search error", "--json", "--mode", "deep"],
            lambda a, b: (len(a.json["plan"]["variants"]), len(b.json["plan"]["variants"])) == (1, 3),
        ),
        "--session": ([*SEARCH, "--session", "s"], [*SEARCH, "--session", "s"], lambda a, b: keys(a) != [] == keys(b)),
        "--deadline-ms": (
            SEARCH,
            [*SEARCH, "--deadline-ms", "0.000001"],
            lambda a, b: [len(t.json["notes"]["degraded"]) for t in (a, b)] == [0, 1],
        ),
        "--explain": (SEARCH, [*SEARCH, "--explain"], lambda a, b: "explanations" in b.json.keys() - a.json.keys()),
        "--why-not": (
            SEARCH,
            [*SEARCH, "--why-not", "docs/tone.md"],
            lambda a, b: "why_not" in b.json.keys() - a.json.keys(),
        ),
        "--db": (SEARCH, [*SEARCH, "--db", "nowhere.db"], ends(0, 2)),
        "--pipeline": (
            SEARCH,
            [*SEARCH, *BM25],
            lambda a, b: [t.json["pipeline"]["name"] for t in (a, b)] == ["default", "bm25"],
        ),
        "--set": (SEARCH, [*SEARCH, *SET], lambda a, b: a.json["pipeline"]["hash"] != b.json["pipeline"]["hash"]),
        "--json": (SEARCH[:2], SEARCH, document),
    },
    "serve": {
        "--transport": (["serve"], HTTP, lambda a, b: [list(t.work) for t in (a, b)] == [["stdio"], ["http"]]),
        "--host": (HTTP, [*HTTP, "--host", "::1"], at_work),
        "--port": (HTTP, [*HTTP, "--port", "1"], at_work),
        "--token-file": (HTTP, [*HTTP, "--token-file", "token"], at_work),
        "--allow-host": (HTTP, [*HTTP, "--allow-host", "proxy"], at_work),
        "--warm-up": (["serve"], ["serve", "--no-warm-up"], at_work),
        "--watch": (["serve"], ["serve", "--watch"], at_work),
        "--profile": (["serve"], ["serve", "--profile", "core"], at_work),
        "--cache-seconds": (["serve"], ["serve", "--cache-seconds", "5"], at_work),
        "--workspace": (["serve"], ["serve", "--workspace", "docs"], at_work),
        "--db": (["serve"], ["serve", "--db", "other.db"], at_work),
        "--pipeline": (["serve"], ["serve", *BM25], at_work),
        "--set": (["serve"], ["serve", *SET], at_work),
    },
    "help": {"names": (["help"], ["help", "links", "add"], said)},
    "doctor": {
        "--verbose": (["doctor"], ["doctor", "--verbose"], said),
        "--db": (["doctor"], ["doctor", "--db", "docs/tone.md"], ends(0, 1)),
        "--pipeline": (["doctor"], ["doctor", "--pipeline", "docs/tone.md"], ends(0, 1)),
        "--set": (["doctor"], ["doctor", "--set", "bm25.b=7"], ends(0, 1)),
        "--json": (["doctor"], ["doctor", "--json"], document),
        "--fix": (
            ["doctor", "--json"],
            ["doctor", "--json", "--fix"],
            lambda a, b: ["memories need none" in t.out for t in (a, b)] == [True, False],
        ),
        "--repair": (
            ["doctor"],
            ["doctor", "--repair"],
            lambda a, b: ["to be mended" in t.out for t in (a, b)] == [0, 1],
        ),
    },
    "maintain": {
        "--db": (["maintain"], ["maintain", *OTHER_DB], ends(0, 2)),
        "--json": (["maintain", "--dry-run"], ["maintain", "--dry-run", "--json"], document),
        "--dry-run": (["maintain", "--dry-run"], ["maintain"], said),
    },
    "match": {
        "prompt": (
            MATCH,
            ["match", "no phrase", "--json"],
            lambda a, b: [keys(t) for t in (a, b)] == [FUSED, []],
        ),
        "--limit": (MATCH, [*MATCH, "--limit", "1"], given("match_triggers", "limit")),
        "--session": (MATCH, [*MATCH, "--session", "s"], lambda _a, b: "attention" in b.json["results"][0]),
        "--turn": (
            [*MATCH, "--session", "s", "--turn", "1"],
            [*MATCH, "--session", "s", "--turn", "9"],
            lambda a, b: [t.json["attended"] for t in (a, b)] == [0, 1] and 0 < attention(b) < 0.9,
        ),
        "--db": (MATCH, [*MATCH, *OTHER_DB], ends(0, 2)),
        "--json": (MATCH[:-1], MATCH, document),
    },
    "list": {
        "--folder": (LIST, [*LIST, "--folder", "docs/storage"], lambda a, b: [listed(t) for t in (a, b)] == [6, 2]),
        "--sort": (LIST, [*LIST, "--sort", "importance_weight"], said),
        "--limit": (LIST, [*LIST, "--limit", "1"], lambda a, b: [listed(t) for t in (a, b)] == [6, 1]),
        "--offset": (LIST, [*LIST, "--offset", "4"], lambda a, b: [listed(t) for t in (a, b)] == [6, 2]),
        "--chunks": (LIST, [*LIST, "--chunks"], lambda a, b: listed(b) > 2 * listed(a) - 1),
        "--db": (LIST, [*LIST, *OTHER_DB], ends(0, 2)),
        "--json": (LIST[:-1], LIST, document),
    },
    "validate": {
        "name": (JUDGED, ["validate", "docs/cjk.md", *JUDGED[2:]], tells("key")),
        "--useful": (JUDGED, [*JUDGED[:2], "--not-useful", "--json"], tells("confidence")),
        "--promote": (JUDGED, [*JUDGED, "--promote"], ends(0, 2)),
        "--session": (JUDGED, [*JUDGED, "--session", "s"], tells("session")),
        "--db": (JUDGED, [*JUDGED, *OTHER_DB], ends(0, 2)),
        "--json": (JUDGED[:-1], JUDGED, document),
    },
    "show": {
        "name": (["show", "docs/tone.md"], ["show", "docs/fusion.md"], said),
        "--section": (["show", "docs/tone.md"], ["show", "docs/tone.md", "--section", "Tone"], said),
        "--from-line": (["show", "docs/tone.md"], ["show", "docs/tone.md", "--from-line", "3"], said),
        "--session": (
            ["show", "docs/tone.md"],
            ["show", "docs/tone.md", "--session", "s"],
            given("was_read", "session"),
        ),
        "--db": (["show", "docs/tone.md"], ["show", "docs/tone.md", *OTHER_DB], ends(0, 2)),
        "--json": (["show", "docs/tone.md"], ["show", "docs/tone.md", "--json"], document),
    },
    "save": {
        "file": (["save", "docs/tone.md"], ["save", "docs/fusion.md"], said),
        "--content": (["save", "docs/tone.md"], ["save", "docs/new.md", "--content", "New words."], said),
        "--title": (DRAFT, [*DRAFT, "--title", "Another name"], said),
        "--folder": (DRAFT, [*DRAFT, "--folder", "docs"], said),
        "--tier": (DRAFT, [*DRAFT, "--tier", "golden"], ends(0, 2)),
        "--trigger": (DRAFT, [*DRAFT, "--trigger", " "], ends(0, 2)),
        "--append": (TEXT, [*TEXT, "--append"], ends(1, 0)),
        "--replace": (TEXT, [*TEXT, "--replace"], ends(1, 2)),
        "--section": ([*TEXT, "--append"], [*TEXT, "--append", "--section", "absent"], ends(0, 2)),
        "--force": (BROKEN, [*BROKEN, "--force"], ends(2, 0)),
        "--skip-preflight": (BROKEN, [*BROKEN, "--skip-preflight"], ends(2, 0)),
        "--dry-run": (["save", "docs/tone.md"], ["save", "docs/tone.md", "--dry-run"], said),
        "--session": (
            ["save", "docs/tone.md"],
            ["save", "docs/tone.md", "--session", "s"],
            given("save_file", "session"),
        ),
        "--db": (["save", "docs/tone.md", "--dry-run"], ["save", "docs/tone.md", "--dry-run", *OTHER_DB], ends(0, 2)),
        "--json": (["save", "docs/tone.md"], ["save", "docs/tone.md", "--json"], document),
    },
    "update": {
        "name": (UPDATE, ["update", "docs/storage/wal.md", "--weight", "0.25"], said),
        "--title": (UPDATE, [*UPDATE, "--title", "Tone of voice"], said),
        "--trigger": (UPDATE, [*UPDATE, "--trigger", "how we write"], said),
        "--no-triggers": (UPDATE, [*UPDATE, "--trigger", "how we write", "--no-triggers"], ends(0, 2)),
        "--tier": (UPDATE, [*UPDATE, "--tier", "important"], said),
        "--weight": (UPDATE, ["update", "docs/fusion.md", "--weight", "0.5"], said),
        "--partial": (UPDATE, [*UPDATE, "--partial"], given("update", "allow_partial")),
        "--db": (UPDATE, [*UPDATE, *OTHER_DB], ends(0, 2)),
        "--json": (UPDATE, [*UPDATE, "--json"], document),
    },
    "delete": {
        "name": (["delete", "docs/tone.md", "--dry-run"], ["delete", "docs/cjk.md", "--dry-run"], said),
        "--folder": ([*GO, "docs/storage", "--dry-run"], [*GO, "docs", "--dry-run"], said),
        "--tier": ([*GO, "docs", "--dry-run"], [*GO, "docs", "--dry-run", "--tier", "temporary"], said),
        "--older-than": (TIER, [*TIER, "--older-than", "9"], said),
        "--skip-checkpoint": (
            ["delete", "--tier", "normal", "--confirm", "--folder", "docs/storage", "--json"],
            ["delete", "--tier", "normal", "--confirm", "--folder", "docs", "--skip-checkpoint", "--json"],
            lambda a, b: a.json["checkpoint"] is not None and b.json["checkpoint"] is None,
        ),
        "--confirm": ([*GO, "docs/storage"], [*GO, "docs/storage", "--confirm"], ends(2, 0)),
        "--dry-run": ([*GO, "docs/storage"], [*GO, "docs/storage", "--dry-run"], ends(2, 0)),
        "--db": (TIER, [*TIER, *OTHER_DB], ends(0, 2)),
        "--json": (TIER, [*TIER, "--json"], document),
    },
    "undelete": {
        "deletion": (["undelete"], ["undelete", "absent"], ends(0, 2)),
        "--db": (["undelete"], ["undelete", *OTHER_DB], ends(0, 2)),
        "--json": (["undelete"], ["undelete", "--json"], document),
    },
    "unarchive": {
        "names": (["unarchive"], ["unarchive", "docs/tone.md"], said),
        "--db": (["unarchive"], ["unarchive", *OTHER_DB], ends(0, 2)),
        "--json": (["unarchive"], ["unarchive", "--json"], document),
    },
    "lineage": {
        "name": (LINEAGE, ["lineage", "docs/cjk.md"], said),
        "--direction": (LINEAGE, [*LINEAGE, "--direction", "incoming"], said),
        "--depth": (LINEAGE, [*LINEAGE, "--depth", "1"], said),
        "--relation": (LINEAGE, [*LINEAGE, "--relation", "enabled"], said),
        "--mermaid": (LINEAGE, [*LINEAGE, "--mermaid"], said),
        "--db": (LINEAGE, [*LINEAGE, *OTHER_DB], ends(0, 2)),
        "--json": (LINEAGE, [*LINEAGE, "--json"], document),
    },
    "links add": {
        "source": (LINK, [*LINK[:2], "docs/long.md", *LINK[3:]], said),
        "relation": (LINK, [*LINK[:3], "enabled", LINK[4]], said),
        "target": (LINK, [*LINK[:4], "docs/long.md"], said),
        "--strength": (LINK, [*LINK, "--strength", "0.3"], said),
        "--evidence": (LINK, [*LINK, "--evidence", "as the meeting said"], said),
        "--db": (LINK, [*LINK, *OTHER_DB], ends(0, 2)),
        "--json": (LINK, [*LINK, "--json"], document),
    },
    "links remove": {
        "link": (["links", "remove", "1"], ["links", "remove", "99"], ends(0, 2)),
        "--db": (["links", "remove", "1"], ["links", "remove", "1", *OTHER_DB], ends(0, 2)),
        "--json": (["links", "remove", "1"], ["links", "remove", "2", "--json"], document),
    },
    "links history": {
        "name": (LINKED, [*LINKED, "docs/cjk.md"], said),
        "--by": (LINKED, [*LINKED, "--by", "nobody"], said),
        "--limit": (LINKED, [*LINKED, "--limit", "1"], said),
        "--db": (LINKED, [*LINKED, *OTHER_DB], ends(0, 2)),
        "--json": (LINKED, [*LINKED, "--json"], document),
    },
    "links review": {
        "--dismiss": (["links", "review"], ["links", "review", "--dismiss", "99"], ends(0, 2)),
        "--db": (["links", "review"], ["links", "review", *OTHER_DB], ends(0, 2)),
        "--json": (["links", "review"], ["links", "review", "--json"], document),
    },
    "links undo": {
        "changes": (["links", "undo", "1"], ["links", "undo", "2"], said),
        "--by": (["links", "undo", "1"], ["links", "undo", "--by", "manual"], said),
        "--db": (["links", "undo", "1"], ["links", "undo", "1", *OTHER_DB], ends(0, 2)),
        "--json": (["links", "undo", "1"], ["links", "undo", "2", "--json"], document),
    },
    "learned list": {
        "--db": (["learned", "list"], ["learned", "list", *OTHER_DB], ends(0, 2)),
        "--json": (["learned", "list"], ["learned", "list", "--json"], document),
    },
    "learned forget": {
        "name": (FORGET, ["learned", "forget", "docs/storage/wal.md"], given("unlearn", "name")),
        "--phrase": (FORGET, [*FORGET, "--phrase", "zeppelin"], given("unlearn", "phrase")),
        "--all": (["learned", "forget"], ["learned", "forget", "--all"], ends(2, 0)),
        "--db": (FORGET, [*FORGET, *OTHER_DB], ends(0, 2)),
        "--json": (FORGET, [*FORGET, "--json"], document),
    },
    "learned judgements": {
        "--memory": (JUDGEMENTS, [*JUDGEMENTS, "--memory", "docs/cjk.md"], said),
        "--session": (JUDGEMENTS, [*JUDGEMENTS, "--session", "s2"], said),
        "--limit": (JUDGEMENTS, [*JUDGEMENTS, "--limit", "1"], said),
        "--db": (JUDGEMENTS, [*JUDGEMENTS, *OTHER_DB], ends(0, 2)),
        "--json": (JUDGEMENTS, [*JUDGEMENTS, "--json"], document),
    },
    "learned undo": {
        "numbers": ([*TAKE_BACK, "1"], [*TAKE_BACK, "2"], said),
        "--memory": ([*TAKE_BACK, "1"], [*TAKE_BACK, "--memory", "docs/cjk.md"], said),
        "--session": ([*TAKE_BACK, "1"], [*TAKE_BACK, "--session", "s2"], said),
        "--db": ([*TAKE_BACK, "1"], [*TAKE_BACK, "1", *OTHER_DB], ends(0, 2)),
        "--json": ([*TAKE_BACK, "1"], [*TAKE_BACK, "2", "--json"], document),
    },
    "task preflight": {
        "folder": (TASK_BEGUN, ["task", "preflight", "other", "t", *SCORES], tells("specFolder")),
        "task": (TASK_BEGUN, ["task", "preflight", "specs", "u", *SCORES], tells("taskId")),
        "--knowledge": (TASK_BEGUN, [*TASK_BEGUN, "--knowledge", "1"], tells("before", "knowledge")),
        "--uncertainty": (TASK_BEGUN, [*TASK_BEGUN, "--uncertainty", "1"], tells("before", "uncertainty")),
        "--context": (TASK_BEGUN, [*TASK_BEGUN, "--context", "1"], tells("before", "context")),
        "--gap": (TASK_BEGUN, [*TASK_BEGUN, "--gap", "why"], tells("knowledgeGaps")),
        "--session": (TASK_BEGUN, [*TASK_BEGUN, "--session", "s"], tells("sessionId")),
        "--db": (TASK_BEGUN, [*TASK_BEGUN, *OTHER_DB], ends(0, 2)),
        "--json": (TASK_BEGUN[:-1], TASK_BEGUN, document),
    },
    "task postflight": {
        "folder": (TASK_DONE, ["task", "postflight", "other", "t2", *SCORES], ends(0, 2)),
        "task": (TASK_DONE, ["task", "postflight", "specs", "u", *SCORES], ends(0, 2)),
        "--knowledge": (TASK_DONE, [*OTHER_DONE, "--knowledge", "100"], tells("after", "knowledge")),
        "--uncertainty": (TASK_DONE, [*OTHER_DONE, "--uncertainty", "1"], tells("after", "uncertainty")),
        "--context": (TASK_DONE, [*OTHER_DONE, "--context", "1"], tells("after", "context")),
        "--closed": (TASK_DONE, [*OTHER_DONE, "--closed", "why"], tells("gapsClosed")),
        "--new-gap": (TASK_DONE, [*OTHER_DONE, "--new-gap", "why"], tells("newGapsDiscovered")),
        "--db": (TASK_DONE, [*TASK_DONE, *OTHER_DB], ends(0, 2)),
        "--json": (TASK_DONE[:-1], OTHER_DONE, document),
    },
    "task history": {
        "folder": (TASKS, ["task", "history", "other", "--json"], said),
        "--session": (TASKS, [*TASKS, "--session", "s"], lambda a, b: [len(t.json["tasks"]) for t in (a, b)] == [3, 1]),
        "--limit": (TASKS, [*TASKS, "--limit", "1"], lambda a, b: [len(t.json["tasks"]) for t in (a, b)] == [3, 1]),
        "--complete": (TASKS, [*TASKS, "--complete"], lambda a, b: [len(t.json["tasks"]) for t in (a, b)] == [3, 0]),
        "--db": (TASKS, [*TASKS, *OTHER_DB], ends(0, 2)),
        "--json": (TASKS[:-1], TASKS, document),
    },
    "stats": {
        "--limit": (
            ["stats", "--json"],
            ["stats", "--json", "--limit", "1"],
            lambda a, b: [len(t.json["folders"]) for t in (a, b)] == [min(10, a.json["folder_count"]), 1],
        ),
        "--rank": (["stats"], ["stats", "--rank", "recency"], said),
        "--exclude": (
            STATS,
            [*STATS, "--exclude", "/sto[r]age$"],
            lambda a, b: [len(t.json["folders"]) for t in (a, b)] == [2, 1],
        ),
        "--scores": (STATS, [*STATS, "--scores"], lambda _a, b: b.json["folders"][0]["parts"].keys() >= {"recency"}),
        "--archived": (STATS, [*STATS, "--archived"], given("folders", "archived")),
        "--db": (["stats"], ["stats", *OTHER_DB], ends(0, 2)),
        "--json": (["stats"], ["stats", "--json"], document),
    },
    "graph show": {
        "--db": (["graph", "show"], ["graph", "show", *OTHER_DB], ends(0, 2)),
        "--json": (["graph", "show"], ["graph", "show", "--json"], document),
    },
    "graph link": {
        "--db": (["graph", "link"], ["graph", "link", *OTHER_DB], ends(0, 2)),
        "--json": (["graph", "link"], ["graph", "link", "--json"], document),
    },
    "graph remove": {
        "--by": (REMOVE, [*REMOVE[:2], "--by", "manual"], ends(0, 2)),
        "--dry-run": ([*REMOVE, "--dry-run"], REMOVE, said),
        "--db": (REMOVE, [*REMOVE, *OTHER_DB], ends(0, 2)),
        "--json": ([*REMOVE, "--dry-run"], [*REMOVE, "--dry-run", "--json"], document),
    },
    "export": {
        "directory": (EXPORT, ["export", "one", "--json"], said),
        "--folder": (
            EXPORT,
            ["export", "part", "--json", "--folder", "docs/storage"],
            lambda a, b: [t.json["memories"] for t in (a, b)] == [6, 2],
        ),
        "--db": (EXPORT, [*EXPORT, *OTHER_DB], ends(0, 2)),
        "--json": (EXPORT[:-1], ["export", "one", "--json"], document),
    },
    "import": {
        "source": (IMPORT, ["import", "docs/storage", "--json"], said),
        "--merge": ([*IMPORT, "--replace"], [*IMPORT, "--replace", "--merge"], ends(0, 2)),
        "--replace": (
            ["import", "notes", "--into", "docs", "--json"],
            ["import", "notes", "--into", "docs", "--replace", "--json"],
            lambda a, b: [t.json["updated"] for t in (a, b)] == [0, 1],
        ),
        "--into": (
            IMPORT,
            [*IMPORT, "--into", "docs"],
            lambda a, b: [t.json["memories"][0]["key"] for t in (a, b)] == ["more/copy.md", "docs/copy.md"],
        ),
        "--dry-run": (
            IMPORT,
            [*IMPORT, "--into", "new", "--dry-run"],
            lambda a, b: [len(t.json["written"]) for t in (a, b)] == [0, 0] and not Path("new").exists(),
        ),
        "--db": (IMPORT, [*IMPORT, *OTHER_DB], lambda _a, b: Path(OTHER_DB[1]).exists() and b.json["created"] == 1),
        "--json": (IMPORT[:-1], IMPORT, document),
    },
    "checkpoint create": {
        "name": (["checkpoint", "create", "a"], ["checkpoint", "create", "b"], said),
        "--folder": (
            ["checkpoint", "create", "a", "--json"],
            ["checkpoint", "create", "b", "--json", "--folder", "docs/storage"],
            lambda a, b: [t.json["checkpoint"]["memories"] for t in (a, b)] == [7, 2],
        ),
        "--metadata": (
            ["checkpoint", "create", "a", "--json"],
            ["checkpoint", "create", "b", "--json", "--metadata", '{"why": 1}'],
            lambda a, b: [t.json["checkpoint"]["metadata"] for t in (a, b)] == [{}, {"why": 1}],
        ),
        "--db": (["checkpoint", "create", "a"], ["checkpoint", "create", "b", *OTHER_DB], ends(0, 2)),
        "--json": (["checkpoint", "create", "a"], ["checkpoint", "create", "b", "--json"], document),
    },
    "checkpoint list": {
        "--folder": (CHECKPOINTS, [*CHECKPOINTS, "--folder", "docs/cache"], said),
        "--limit": (CHECKPOINTS, [*CHECKPOINTS, "--limit", "1"], said),
        "--db": (CHECKPOINTS, [*CHECKPOINTS, *OTHER_DB], ends(0, 2)),
        "--json": (CHECKPOINTS, [*CHECKPOINTS, "--json"], document),
    },
    "checkpoint restore": {
        "name": ([*RESTORE, "kept"], [*RESTORE, "other"], ends(0, 2)),
        "--replace": (
            [*RESTORE, "kept", "--json"],
            [*RESTORE, "kept", "--json", "--replace"],
            lambda a, b: [t.json["removed"] for t in (a, b)] == [0, 1],
        ),
        "--no-backup": (
            [*RESTORE, "kept", "--json", "--replace"],
            [*RESTORE, "kept", "--json", "--replace", "--no-backup"],
            lambda a, b: [t.json["before"] is None for t in (a, b)] == [False, True],
        ),
        "--foreign": ([*RESTORE, "foreign"], [*RESTORE, "foreign", "--foreign"], ends(1, 0)),
        "--db": ([*RESTORE, "kept"], [*RESTORE, "kept", *OTHER_DB], ends(0, 2)),
        "--json": ([*RESTORE, "kept"], [*RESTORE, "kept", "--json"], document),
    },
    "checkpoint delete": {
        "name": (["checkpoint", "delete", "kept"], ["checkpoint", "delete", "other"], ends(0, 2)),
        "--db": (["checkpoint", "delete", "kept"], ["checkpoint", "delete", "kept", *OTHER_DB], ends(0, 2)),
        "--json": (["checkpoint", "delete", "kept"], ["checkpoint", "delete", "foreign", "--json"], document),
    },
    "model list": {
        "--db": (["model", "list"], ["model", "list", *OTHER_DB], said),
        "--json": (["model", "list"], ["model", "list", "--json"], document),
    },
    "model pull": {
        "name": (PULL, ["model", "pull", "fastembed:BAAI/bge-base-en-v1.5"], at_work),
        "--json": (PULL, [*PULL, "--json"], document),
    },
    "model use": {
        "name": (USE, ["model", "use", "bundld"], ends(0, 1)),
        "--rollback": (USE, ["model", "use", "--rollback"], ends(0, 2)),
        "--compare-only": (USE, [*USE, "--compare-only"], said),
        "--no-compare": ([*USE, "--compare-only"], [*USE, "--compare-only", "--no-compare"], ends(0, 2)),
        "--db": (USE, [*USE, *OTHER_DB], ends(0, 2)),
        "--json": (USE, [*USE, "--json"], document),
    },
    "pipeline check": {
        "file": (["pipeline", "check", "bm25"], ["pipeline", "check", "docs/tone.md"], ends(0, 2)),
        "--set": (["pipeline", "check", "bm25"], ["pipeline", "check", "bm25", "--set", "bm25.b=7"], ends(0, 2)),
        "--json": (["pipeline", "check", "bm25"], ["pipeline", "check", "bm25", "--json"], document),
    },
    "pipeline show": {
        "--effective": (SHOW, [*SHOW, "--effective"], said),
        "--origin": (SHOW, [*SHOW, "--origin"], said),
        "--pipeline": (SHOW, [*SHOW, *BM25], said),
        "--set": (SHOW, [*SHOW, *SET], said),
        "--json": (SHOW, [*SHOW, "--json"], document),
    },
    "pipeline plan": {
        "query": (PLAN, ["pipeline", "plan", "quokka cache", "--json"], said),
        "--limit": (ROUTED, [*ROUTED, "--limit", "90"], lambda a, b: [limits(t) for t in (a, b)] == [{10}, {90}]),
        "--folder": (
            PLAN,
            [*PLAN, "--folder", "docs/storage"],
            lambda a, b: a.json["work"]["memories_in_scope"] > b.json["work"]["memories_in_scope"] > 0,
        ),
        "--mode": (
            PLAN,
            [*PLAN, "--mode", "deep"],
            lambda a, b: [t.json["plan"]["mode"] for t in (a, b)] == ["auto", "deep"],
        ),
        "--db": (PLAN, [*PLAN, "--db", "nowhere.db"], ends(0, 2)),
        "--pipeline": (PLAN, [*PLAN, *BM25], said),
        "--set": (PLAN, [*PLAN, "--set", "bm25.limit=7"], said),
        "--json": (PLAN[:3], PLAN, document),
    },
    "pipeline diff": {
        "a": (["pipeline", "diff", "bm25", "rrf"], ["pipeline", "diff", "rsf", "rrf"], said),
        "b": (["pipeline", "diff", "bm25", "rrf"], ["pipeline", "diff", "bm25", "rsf"], said),
        "--json": (["pipeline", "diff", "bm25", "rrf"], ["pipeline", "diff", "bm25", "rrf", "--json"], document),
    },
    # a schema is JSON with and without the option, which is taken because every command takes it
    "pipeline schema": {
        "--json": (["pipeline", "schema"], ["pipeline", "schema", "--json"], lambda a, b: a.json == b.json != {}),
    },
    "pipeline tune": {
        "source": (TUNE, ["pipeline", "tune", "rrf", *TUNE[3:]], at_work),
        "--dataset": (TUNE, [*TUNE, *SECOND], at_work),
        "--own": (TUNE, OWN_TUNE, at_work),
        "--from-use": (
            OWN_TUNE,
            [*OWN_TUNE, "--from-use"],
            at_work,
        ),
        "--db": (
            OWN_TUNE,
            [*OWN_TUNE, *OTHER_DB],
            at_work,
        ),
        "--out": (TUNE, [*TUNE[:-1], "nowhere/out.yaml"], lambda a, b: bool(a.work) and not b.work and b.status == 2),
        "--parameter": (TUNE, [*TUNE, "--parameter", "bm25.b"], at_work),
        "--trials": (TUNE, [*TUNE, "--trials", "7"], at_work),
        "--folds": (TUNE, [*TUNE, "--folds", "7"], at_work),
        "--seed": (TUNE, [*TUNE, "--seed", "7"], at_work),
        "--queries": (TUNE, [*TUNE, "--queries", "7"], at_work),
        "--jobs": (TUNE, [*TUNE, "--jobs", "7"], at_work),
        "--json": (TUNE, [*TUNE, "--json"], document),
    },
    "pipeline calibrate": {
        "source": (CALIBRATE, ["pipeline", "calibrate", "quality", *CALIBRATE[3:]], at_work),
        "--dataset": (CALIBRATE, [*CALIBRATE, *SECOND], at_work),
        "--own": (CALIBRATE, OWN_CALIBRATE, at_work),
        "--from-use": (
            OWN_CALIBRATE,
            [*OWN_CALIBRATE, "--from-use"],
            at_work,
        ),
        "--db": (
            OWN_CALIBRATE,
            [*OWN_CALIBRATE, *OTHER_DB],
            at_work,
        ),
        "--out": (
            CALIBRATE,
            [*CALIBRATE[:-1], "nowhere/out.yaml"],
            lambda a, b: bool(a.work) and not b.work and b.status == 2,
        ),
        "--false-alarms": (CALIBRATE, [*CALIBRATE, "--false-alarms", "0.07"], at_work),
        "--folds": (CALIBRATE, [*CALIBRATE, "--folds", "7"], at_work),
        "--seed": (CALIBRATE, [*CALIBRATE, "--seed", "7"], at_work),
        "--queries": (CALIBRATE, [*CALIBRATE, "--queries", "7"], at_work),
        "--json": (CALIBRATE, [*CALIBRATE, "--json"], document),
    },
    "flags list": {
        "--json": (["flags", "list"], ["flags", "list", "--json"], document),
        "--pipeline": (["flags", "list", "--json"], ["flags", "list", "--json", "--pipeline", "catalogue"], said),
    },
    "flags promote": {
        "name": (PROMOTE, [*PROMOTE[:2], "SPECKIT_MMR"], at_work),
        "--evidence": (PROMOTE, [*PROMOTE, "--evidence", "a" * 12], at_work),
        "--db": (PROMOTE, [*PROMOTE, *OTHER_DB], at_work),
        "--pipeline": (PROMOTE, [*PROMOTE, "--pipeline", "bm25"], at_work),
        "--json": (PROMOTE, [*PROMOTE, "--json"], document),
    },
    "flags demote": {
        "name": (DEMOTE, [*DEMOTE[:2], "SPECKIT_MMR"], at_work),
        "--db": (DEMOTE, [*DEMOTE, *OTHER_DB], at_work),
        "--pipeline": (DEMOTE, [*DEMOTE, "--pipeline", "bm25"], at_work),
        "--json": (DEMOTE, [*DEMOTE, "--json"], document),
    },
    "shadow report": {
        "--json": (REPORT, [*REPORT, "--json"], document),
        "--html": (REPORT, [*REPORT, "--html", "page.html"], said),
        "--since": ([*REPORT, "--json"], [*REPORT, "--json", "--since", "24h"], said),
        "--experiment": (REPORT, [*REPORT, "--experiment", "a" * 12], ends(0, 2)),
        "--db": (REPORT, [*REPORT, *OTHER_DB], ends(0, 2)),
    },
    "flags audit": {
        "--json": (["flags", "audit"], ["flags", "audit", "--json"], document),
        "--strict": (["flags", "audit"], ["flags", "audit", "--strict"], at_work),
        "--db": (["flags", "audit"], ["flags", "audit", *OTHER_DB], at_work),
        "--pipeline": (["flags", "audit"], ["flags", "audit", "--pipeline", "bm25"], at_work),
    },
    "eval make-queries": {
        "--dataset": (MADE, ["eval", "make-queries", *SECOND, "--out", "made"], at_work),
        "--out": (MADE, [*MADE[:-1], "other"], at_work),
        "--kind": (MADE, [*MADE, "--kind", "words"], at_work),
        "--queries": (MADE, [*MADE, "--queries", "7"], at_work),
        "--scope": (MADE, [*MADE, "--scope", "corpus"], at_work),
        "--seed": (MADE, [*MADE, "--seed", "7"], at_work),
        "--force": (MADE, [*MADE, "--force"], at_work),
        "--json": (MADE, [*MADE, "--json"], document),
    },
    "eval run": {
        "--dataset": (RUN, ["eval", "run", *SECOND], at_work),
        "--pipeline": (RUN, [*RUN, *BM25], at_work),
        "--run-file": (RUN, [*RUN, "--run-file", "run.txt"], at_work),
        "--db": ([*RUN[:2], "--own"], [*RUN[:2], "--own", *OTHER_DB], at_work),
        "--queries": (RUN, [*RUN, "--queries", "7"], at_work),
        "--set": (RUN, [*RUN, *SET], at_work),
        "--json": (RUN, [*RUN, "--json"], document),
        "--own": (RUN, [*RUN[:2], "--own"], at_work),
        "--from-use": ([*RUN[:2], "--own"], [*RUN[:2], "--from-use"], at_work),
    },
    "eval compare": {
        "--dataset": (COMPARE, ["eval", "compare", *SECOND], at_work),
        "--pipeline": (COMPARE, [*COMPARE, *BM25], at_work),
        "--flag": (COMPARE, [*COMPARE, "--flag", "SPECKIT_RSF_FUSION"], at_work),
        "--run-file": (RUNS, [*RUNS, "--run-file", "two.run"], at_work),
        "--qrels": (RUNS, [*RUNS[:-1], "two.txt"], at_work),
        "--qrels-out": (COMPARE, [*COMPARE, "--qrels-out", "out.txt"], at_work),
        "--queries": (COMPARE, [*COMPARE, "--queries", "7"], at_work),
        "--no-keep": (COMPARE, [*COMPARE, "--no-keep"], at_work),
        "--db": (COMPARE, [*COMPARE, *OTHER_DB], at_work),
        "--set": (COMPARE, [*COMPARE, *SET], at_work),
        "--json": (COMPARE, [*COMPARE, "--json"], document),
        "--own": (COMPARE, [*COMPARE[:2], "--own"], at_work),
        "--from-use": ([*COMPARE[:2], "--own"], [*COMPARE[:2], "--from-use"], at_work),
    },
    "eval replay": {
        "--pipeline": (REPLAY, [*REPLAY[:-1], "rrf"], at_work),
        "--against": (REPLAY, [*REPLAY, "--against", "rsf"], at_work),
        "--since": (REPLAY, [*REPLAY, "--since", "7d"], at_work),
        "--no-keep": (REPLAY, [*REPLAY, "--no-keep"], at_work),
        "--flag": (REPLAY, ["eval", "replay", "--flag", "SPECKIT_MMR"], at_work),
        "--db": (REPLAY, [*REPLAY, "--db", "more/../memory.db"], at_work),
        "--set": (REPLAY, [*REPLAY, *SET], at_work),
        "--json": (REPLAY, [*REPLAY, "--json"], document),
    },
    "eval scorings": {
        "--since": (SCORINGS, [*SCORINGS, "--since", "1m"], said),
        "--db": (SCORINGS, [*SCORINGS, "--db", "nowhere/memory.db"], said),
        "--json": (SCORINGS, [*SCORINGS, "--json"], document),
    },
    "eval history": {
        "--metric": (HISTORY, [*HISTORY, "--metric", "MRR@5"], said),
        "--since": (HISTORY, [*HISTORY, "--since", "1m"], said),
        "--db": (HISTORY, [*HISTORY, "--db", "nowhere/memory.db"], said),
        "--json": (HISTORY, [*HISTORY, "--json"], document),
    },
    "eval gate": {
        "--dataset": (GATE, [*GATE[:2], *SECOND, *GATE[4:]], at_work),
        "--against": (GATE, [*GATE[:-1], "rsf"], at_work),
        "--good-enough": (
            GATE,
            [*GATE[:4], "--good-enough"],
            lambda a, b: [*a.work] == ["gate"] and [*b.work] == ["good enough"],
        ),
        "--max-loss": (GATE, [*GATE, "--max-loss", "0.01"], at_work),
        "--markdown": (GATE, [*GATE, "--markdown", "docs"], ends(1, 2)),
        "--queries": (GATE, [*GATE, "--queries", "7"], at_work),
        "--no-keep": (GATE, [*GATE, "--no-keep"], at_work),
        "--db": (GATE, [*GATE, *OTHER_DB], at_work),
        "--pipeline": (GATE, [*GATE, *BM25], at_work),
        "--set": (GATE, [*GATE, *SET], at_work),
        "--json": (GATE, [*GATE, "--json"], document),
        "--own": (GATE, [*GATE[:2], "--own", *GATE[4:]], at_work),
        "--from-use": ([*GATE[:2], "--own", *GATE[4:]], [*GATE[:2], "--from-use", *GATE[4:]], at_work),
    },
    "eval baseline": {
        "--dataset": (BASELINE, ["eval", "baseline", *SECOND], at_work),
        "--own": (BASELINE, ["eval", "baseline", "--own"], at_work),
        "--from-use": (["eval", "baseline", "--own"], ["eval", "baseline", "--from-use"], at_work),
        "--queries": (BASELINE, [*BASELINE, "--queries", "7"], at_work),
        "--no-keep": (BASELINE, [*BASELINE, "--no-keep"], at_work),
        "--db": (BASELINE, [*BASELINE, *OTHER_DB], at_work),
        "--pipeline": (BASELINE, [*BASELINE, *BM25], at_work),
        "--set": (BASELINE, [*BASELINE, *SET], at_work),
        "--json": (BASELINE, [*BASELINE, "--json"], document),
    },
    "eval judge": {
        "--experiment": (JUDGE, ["eval", "judge", "--experiment", "0123456789ab"], at_work_elsewhere),
        "--dataset": (JUDGE, [*JUDGE[:2], *SECOND, *JUDGE[4:]], at_work),
        "--own": (JUDGE, [*JUDGE[:2], "--own", *JUDGE[4:]], at_work),
        "--pipeline": (JUDGE, [*JUDGE, *BM25], at_work),
        "--command": (JUDGE, [*JUDGE, "--command", ""], ends(1, 2)),
        "--timeout": ([*JUDGE, "--timeout", "1"], [*JUDGE, "--timeout", "0"], ends(1, 2)),
        "--by": ([*JUDGE, "--by", "me"], [*JUDGE, "--by"], ends(1, 2)),
        "--limit": ([*JUDGE, "--limit", "1"], [*JUDGE, "--limit", "0"], ends(1, 2)),
        "--qrels": (JUDGE, [*JUDGE, "--qrels", "none.txt"], ends(1, 2)),
        "--qrels-out": ([*JUDGE, "--qrels-out", "out"], [*JUDGE, "--qrels-out"], ends(1, 2)),
        "--no-keep": (JUDGE, [*JUDGE, "--no-keep"], at_work),
        "--db": (JUDGE, [*JUDGE, *OTHER_DB], at_work),
        "--json": (JUDGE, [*JUDGE, "--json"], document),
    },
    "eval sensitivity": {
        "--dataset": (SENSITIVITY, ["eval", "sensitivity", *SECOND], at_work),
        "--own": (SENSITIVITY, ["eval", "sensitivity", "--own"], at_work),
        "--from-use": (["eval", "sensitivity", "--own"], ["eval", "sensitivity", "--from-use"], at_work),
        "--step": (SENSITIVITY, [*SENSITIVITY, "--step", "fuse"], at_work),
        "--parameter": (SENSITIVITY, [*SENSITIVITY, "--parameter", "bm25.k1"], at_work),
        "--values": (SENSITIVITY, [*SENSITIVITY, "--values", "1,2"], at_work),
        "--queries": (SENSITIVITY, [*SENSITIVITY, "--queries", "7"], at_work),
        "--db": (["eval", "sensitivity", "--own"], ["eval", "sensitivity", "--own", *OTHER_DB], at_work),
        "--pipeline": (SENSITIVITY, [*SENSITIVITY, *BM25], at_work),
        "--set": (SENSITIVITY, [*SENSITIVITY, *SET], at_work),
        "--json": (SENSITIVITY, [*SENSITIVITY, "--json"], document),
    },
    "eval ablate": {
        "--dataset": (ABLATE, ["eval", "ablate", *SECOND], at_work),
        "--own": (ABLATE, ["eval", "ablate", "--own"], at_work),
        "--from-use": (["eval", "ablate", "--own"], ["eval", "ablate", "--from-use"], at_work),
        "--db": (["eval", "ablate", "--own"], ["eval", "ablate", "--own", *OTHER_DB], at_work),
        "--queries": (ABLATE, [*ABLATE, "--queries", "7"], at_work),
        "--pipeline": (ABLATE, [*ABLATE, *BM25], at_work),
        "--set": (ABLATE, [*ABLATE, *SET], at_work),
        "--json": (ABLATE, [*ABLATE, "--json"], document),
    },
    "eval tokens": {
        "--dataset": (TOKENS, ["eval", "tokens", *SECOND], at_work),
        "--own": (TOKENS, ["eval", "tokens", "--own"], at_work),
        "--from-use": (["eval", "tokens", "--own"], ["eval", "tokens", "--from-use"], at_work),
        "--budget": (TOKENS, [*TOKENS, "--budget", "700"], at_work),
        "--pipeline": (TOKENS, [*TOKENS, *BM25], at_work),
        "--form": (TOKENS, [*TOKENS, "--form", "excerpt=20"], at_work),
        "--no-peers": (TOKENS, [*TOKENS, "--no-peers"], at_work),
        "--queries": (TOKENS, [*TOKENS, "--queries", "7"], at_work),
        "--db": (["eval", "tokens", "--own"], ["eval", "tokens", "--own", *OTHER_DB], at_work),
        "--set": (TOKENS, [*TOKENS, *SET], at_work),
        "--json": (TOKENS, [*TOKENS, "--json"], document),
    },
}


def commands(group: click.Command = ROOT, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command that is no group, by the words that call it."""
    if not isinstance(group, click.Group):
        yield " ".join(path), group
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        inner = group.get_command(context, name)
        assert inner is not None
        yield from commands(inner, (*path, name))


def keep_states(workspace: Path) -> None:
    """Three checkpoints, one of a folder and one of another store; a memory that came after them."""
    with Memory.open(workspace / "memory.db", root=workspace, environ={}) as memory:
        memory.checkpoint_create("kept")
        memory.checkpoint_create("storage", folder="docs/storage")
        memory.checkpoint_create("foreign")
        memory.index_documents([Source("later.md", "# Later\n\nThat came later.\n")])
    leaf = workspace / "memory.db.checkpoints" / "foreign.json"
    leaf.write_text(json.dumps(json.loads(leaf.read_text()) | {"store_id": "0" * 32}))


@pytest.fixture(scope="module")
def prepared(unasked: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], Path]:
    """A workspace in which all commands have something to say, with or without states that were kept: for copies."""

    @cache
    def prepare(states: bool) -> Path:
        workspace = Path(shutil.copytree(unasked, tmp_path_factory.mktemp("prepared") / "workspace"))
        (workspace / "routed.yaml").write_text(ROUTING, encoding="utf-8")
        if states:
            keep_states(workspace)
        (workspace / "more").mkdir()
        shutil.copy(workspace / "docs" / "tone.md", workspace / "more" / "copy.md")
        tone = workspace / "docs" / "tone.md"
        times = tone.stat()
        tone.write_text(tone.read_text(encoding="utf-8") + "\nAnd more.\n", encoding="utf-8")
        os.utime(tone, ns=(times.st_atime_ns, times.st_mtime_ns))
        with Memory.open(workspace / "memory.db", root=workspace, environ={}) as memory:
            memory.link([
                ("docs/tone.md", "caused", "docs/cjk.md", 0.9), ("docs/cjk.md", "supports", "docs/long.md", 0.8),
                ("docs/fusion.md", "enabled", "docs/storage/wal.md", 0.7),
            ])  # fmt: skip
            memory.link([("docs/fusion.md", "supports", "docs/cjk.md", 0.3)], "entities")
            memory.validate("docs/long.md", useful=True, session="s1")
            memory.validate("docs/cjk.md", useful=False, session="s2")
            for task, session in (("t1", ""), ("t2", ""), ("t3", "s")):
                memory.task_preflight("specs", task, knowledge=40, uncertainty=60, context=50, session=session)
        with EvaluationDatabase.open(workspace / "memory.evaluation.db") as database:
            database.record((), scorings=[Scoring("a" * 16, "c" * 12, time.time() - 3600, (1,), (), {})])
            evaluation = StoredEvaluation("e" * 12, "eval compare", time.time() - 3600, "one", "d", {})
            database.keep(evaluation, [Snapshot("c" * 12, "nDCG@10", 0.5, 9)])
        return workspace

    return prepare


@pytest.fixture
def told(
    prepared: Callable[[bool], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> Callable[..., Told]:
    """Runs command lines in a workspace of its own; where work is kept, it is not done."""
    workspace = Path(shutil.copytree(prepared("checkpoint" in request.node.name), tmp_path / "workspace"))
    if "import" in request.node.name:
        (workspace / "notes").mkdir()
        (workspace / "notes" / "tone.md").write_text("# Tone\n\nOf somebody else.\n")
    for name in [name for name in os.environ if name.startswith("SPECKIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SPECKIT_ROOT", str(workspace))
    monkeypatch.setenv("SPECKIT_DB", str(workspace / "memory.db"))
    monkeypatch.chdir(workspace)
    work: dict[str, Any] = {}

    def kept(name: str) -> Callable[..., Any]:
        def keep(*arguments: Any, **named: Any) -> Any:
            named.pop("progress", None)
            work[name] = (*arguments, named) if named else arguments
            raise SpeckitError("E081", "the work is kept, not done")

        return keep

    monkeypatch.setattr(flags_audit, "evidence_in_force", lambda *given: nullcontext(given))
    for name, (module, function) in WORK.items():
        monkeypatch.setattr(module, function, kept(name))

    def noted(name: str) -> Callable[..., Any]:
        operation = getattr(Memory, name)

        def note(memory: Memory, *arguments: Any, **named: Any) -> Any:
            work[name] = named
            return operation(memory, *arguments, **named)

        return note

    for name in ("save_file", "update", "unlearn", "folders", "match_triggers", "was_read"):
        monkeypatch.setattr(Memory, name, noted(name))

    def tell(arguments: list[str]) -> Told:
        work.clear()
        status = run(arguments)
        return Told(status, capsys.readouterr().out, dict(work))

    return tell


def test_every_parameter_of_every_command_has_a_case() -> None:
    declared = {
        name: sorted(p.opts[0] if isinstance(p, click.Option) else str(p.name) for p in command.params)
        for name, command in commands()
    }

    assert declared == {name: sorted(cases) for name, cases in CASES.items()}


@pytest.mark.parametrize(("command", "name"), [(command, name) for command, cases in CASES.items() for name in cases])
def test_an_option_does_what_it_says(command: str, name: str, told: Callable[..., Told]) -> None:
    first, second, differ = CASES[command][name]

    one, other = told(first), told(second)

    assert differ(one, other), (one, other)


@pytest.mark.parametrize("count", [1, 2])
def test_problems_are_counted_in_words(count: int, told: Callable[..., Told]) -> None:
    wrong = ["--set", "mmr.lambda=7", "--set", "importance.normal=-7"][: 2 * count]

    found = told(["pipeline", "check", "catalogue", *wrong])

    assert (found.status, found.out.count(" E118 ")) == (2, count), found.out
    assert f"\n{count} problem{'s' * (count > 1)} in catalogue" in found.out
