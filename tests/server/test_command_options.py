"""Every option and argument of every command changes what it says it changes, through the command line.

Those that a tool has as well are tried through the tool alone: both doors give the operation the same parameters.

Each case is a pair of command lines that differ in one parameter alone. The parameters come from the commands: flags,
choices, whole numbers and options that mean the same everywhere are tried without an entry of their own, and any other
parameter fails until it has one in `COMMANDS`. Each line runs in a fresh copy of one prepared workspace. Of commands
that measure for long or serve for ever, the work that they set going is compared: it has tests of its own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import pytest

from speckit_memory.engine import Memory
from speckit_memory.engine.api.feedback import FeedbackService
from speckit_memory.engine.api.triggers import TriggerService
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing import Source
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import EvaluationFigure, ScoreSample, StoredEvaluation
from speckit_memory.server.commands.cli import ROOT, run
from speckit_memory.server.operations.command_line import Number
from speckit_memory.server.operations.mcp_tools import operations_of_tools
from tests.server.doors import at, note_as_read

WORK = (
    "evaluation.tuning.tuning.tune", "evaluation.tuning.calibration.calibrate", "evaluation.running.run.run",
    "evaluation.tokens.run.measure_tokens", "evaluation.tuning.ablation.ablate",
    "evaluation.comparing.compare.compare_pipelines", "evaluation.comparing.compare.compare_runs",
    "evaluation.comparing.gate.gate", "evaluation.comparing.replay.replay",
    "evaluation.comparing.acceptance.good_enough", "evaluation.comparing.baseline.baseline",
    "evaluation.comparing.sensitivity.sensitivity", "evaluation.judging.cases.of_source",
    "evaluation.judging.cases.of_experiment", "evaluation.made_queries.run.make_queries",
    "memory.models.embedders.pulled.fetching.fetch",
    "server.flags.flag_changes.promote", "server.flags.flag_changes.demote",
    "server.transport.stdio.serve_stdio", "server.transport.http.serve_http", "server.transport.front.serve_front",
    "server.commands.demo._open",
)  # fmt: skip
"""What long commands set going: its arguments are kept by its last name, and nothing is done."""
AUDIT = "server.flags.flag_audit.audit"
"""What `flags audit` alone sets going; `flags list` and `doctor` need what it finds."""
NOTED: dict[str, type] = {"forget": TriggerService, "opened": FeedbackService}
"""Operations of the memory that are done and whose named arguments are kept."""
VOLATILE = re.compile(
    r'\d{10}\.\d+|\d{4}-\d\d-\d\d[T ][\d:.+]+|"\w*(seconds|_ms|query_id)": [^,}]+|[\d.]+ ?(ms|s)\b|0x\w+|demo-\w+'
)
"""Moments, durations, addresses and names drawn by lot, which differ between two runs of one line."""


@dataclass
class Outcome:
    """What one command line said and did: its status, its words, and the arguments of the work that it set going."""

    status: int
    out: str
    work: dict[str, Any] = field(default_factory=dict)

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON document."""
        return json.loads(self.out)

    @property
    def lasting(self) -> tuple[int, str, str]:
        """What depends neither on the clock nor on where objects lie in memory."""
        return self.status, VOLATILE.sub("", self.out), VOLATILE.sub("", repr(self.work))


Differ = Callable[[Outcome, Outcome], bool]
Run = Callable[..., Outcome]


def differ(one: Outcome, other: Outcome) -> bool:
    """Both lines succeed with the same status, and something else differs that the clock does not explain."""
    succeed = one.status == other.status and (one.status == 0 or bool(one.work and other.work))
    return succeed and one.lasting != other.lasting


def become_a_document(one: Outcome, other: Outcome) -> bool:
    return not one.out.lstrip().startswith(("{", "[")) and bool(other.json)


def say_the_same_as_json(one: Outcome, other: Outcome) -> bool:
    """The text alone has more figures; that it has is a test of the terminal's reports."""
    return one.lasting == other.lasting


def find_no_store(one: Outcome, other: Outcome) -> bool:
    """The other store is not there; a long command leaves it to its work to find that."""
    return differ(one, other) if one.status else (one.status, other.status) == (0, 2)


def keep_one_row(one: Outcome, other: Outcome) -> bool:
    return len(rows(one)) > len(rows(other)) == 1


def stay_in_folder(one: Outcome, other: Outcome) -> bool:
    inside = [row for row in rows(one) if row["key"].startswith("docs/storage/")]
    return len(rows(one)) > len(inside) > 0 and {row["key"] for row in rows(other)} == {row["key"] for row in inside}


def measure_own_memories(one: Outcome, other: Outcome) -> bool:
    return differ(one, other) and "OwnSource" in str(other.work)


def set_going(first: str, second: str) -> Differ:
    return lambda one, other: [[*one.work], [*other.work]] == [[first], [second]]


def hand_on(operation: str, name: str) -> Differ:
    """Both succeed, and hand this argument to an operation of the memory with different values."""
    return lambda one, other: (
        one.status == other.status == 0 and one.work[operation][name] != other.work[operation][name]
    )


def end(first: int, second: int) -> Differ:
    return lambda one, other: (one.status, other.status) == (first, second)


def show(read: str | Callable[[Any], Any], first: Any, second: Any) -> Differ:
    """Both succeed, and this is read from their documents."""

    def value(outcome: Outcome) -> Any:
        return at(outcome.json, read) if isinstance(read, str) else read(outcome.json)

    return lambda one, other: one.status == other.status == 0 and [value(one), value(other)] == [first, second]


def add(name: str) -> Differ:
    """Only the second document says something under this name."""
    return lambda one, other: name in other.json.keys() - one.json.keys()


def tell(path: str) -> Differ:
    """Both succeed, and what stands at this path of their documents differs."""
    return lambda one, other: one.status == other.status == 0 and at(one.json, path) != at(other.json, path)


def rows(outcome: Outcome) -> list[Any]:
    """The rows of a document: the first list in it."""
    return next(value for value in outcome.json.values() if isinstance(value, list))


def count(document: Any) -> int:
    return len(next(value for value in document.values() if isinstance(value, list)))


def linked(document: Any) -> list[tuple[str, str]]:
    return [(link["relation"], link["target"]) for link in document["links"]]


@dataclass(frozen=True)
class Example:
    """What a parameter is tried with, and how the outcomes with and without it must differ.

    `value` is what an option takes, or stands in the place of an argument. `line` is what both lines say after the
    command's name, `instead` what of it gives way to the option; `before` comes first in the same workspace.
    """

    value: str = ""
    must: Differ = differ
    line: str | None = None
    before: str = ""
    instead: str = ""


WHOLE = (differ, find_no_store, measure_own_memories)
"""Those that compare all that was said and done."""
E = Example
ONE, OWN = "--dataset one", "--own"
ALIKE = {
    "--json": E(must=become_a_document), "--verbose": E(must=say_the_same_as_json),
    "--db": E("elsewhere/memory.db", find_no_store), "--pipeline": E("bm25"),
    "--set": E("bm25.b=0.1"), "--limit": E("1", keep_one_row), "--folder": E("docs/storage", stay_in_folder),
    "--session": E("s"), "--dataset": E("two", instead=ONE), "--since": E("1m"), "--html": E("page.html"),
    "--own": E("", measure_own_memories, instead=ONE), "--from-use": E("", measure_own_memories),
    "--flag": E("SPECKIT_RSF_FUSION"), "--parameter": E("bm25.k1"), "--evidence": E("a" * 12),
    "--run-file": E("two.run"),
}  # fmt: skip
"""Examples of options that mean the same wherever they are."""

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
SEARCH, SPOKEN = "'rank fusion' --json", "'tell me of reciprocal rank fusion' --json"
SCORES = "--knowledge 40 --uncertainty 60 --context 50 --json"
BROKEN = "docs/broken.md --content '# Broken\n\n<!-- ANCHOR:open -->\nNo end.'"
TEXT = "docs/fusion.md --content 'More words.'"
DRAFT = "--content 'Some words to keep.' --dry-run --json"
COMMANDS: dict[str, tuple[str, dict[str, Example]]] = {
    "demo": ("", {
        "--keep": E("kept.db"),
        "--html": E(".", lambda a, b: "E014" not in a.out and "E014" in b.out, "--json --html page.html"),  # a folder
        "--json": E("", lambda a, b: [x.work["_open"][0].as_json for x in (a, b)] == [False, True]),
    }),
    "init": ("--json", {
        "--write": E("", show(lambda x: ".speckit/config.yaml" in x["created"], False, True)),
        "--client": E("zed", show(lambda x: [one["name"] for one in x["clients"]], [], ["zed"])),
    }),
    "index": ("docs --json", {
        "paths": E("docs/storage"),
        "--force": E("", show("updated", [], ["docs/tone.md"])),
        "--forget": E("", show(lambda x: "docs/tone.md" in x["sources"], True, False), "docs/tone.md --json"),
        "--dry-run": E("", show(lambda x: (x["created"], x["dry_run"]), (["more/copy.md"], False),
                                (["more/copy.md"], True)), "more --json"),
        "--watch": E("", end(0, 2), "docs --dry-run"),
        "--db": E("other.db", show(lambda x: len(x["created"]), 0, 6)),
    }),
    "search": (SEARCH, {
        "query": E("'quokka cache'", show("results.0.key", "docs/fusion.md", "docs/long.md")),
        "--mode": E("deep", show(lambda x: len(x["plan"]["variants"]), 1, 3), "'fix the search error' --json"),
        "--only-fitting": E("", show(lambda x: len(x["results"]), 6, 1)),
        "--session": E("s", show(lambda x: bool(x["results"][0]["snippet"]), True, False),
                       before=f"search {SEARCH} --session s"),
        "--deadline-ms": E("0.000001", show(lambda x: len(x["notes"]["degraded"]), 0, 1)),
        "--explain": E("", add("explanations")),
        "--verbose": E("", lambda a, b: ["surfaced because" in x.out for x in (a, b)] == [False, True],
                       "'rank fusion'"),
        "--why-not": E("docs/tone.md", add("why_not")),
        "--shadow": E("bm25", add("shadows")),
        "--pipeline": E("bm25", show("pipeline.name", "default", "bm25")),
        "--set": E("bm25.b=0.1", tell("pipeline.hash")), "--db": E("nowhere.db", end(0, 2)),
    }),
    "serve": ("", {
        "--transport": E("http", set_going("serve_stdio", "serve_http")),
        "--shared": E("", set_going("serve_stdio", "serve_front")),
        "--host": E("::1", line="--transport http"), "--port": E("1", line="--transport http"),
        "--token-file": E("token", line="--transport http"), "--allow-host": E("proxy", line="--transport http"),
        **{name: E(text, line="--transport http")
           for name, text in (("--issuer", "https://x.y"), ("--audience", "https://x.y"), ("--principal-claim", "x"))},
        "--workspace": E("docs"), "--profile": E("core"),
    }),
    "doctor": ("--json", {
        "--fix": E("", lambda a, b: ["memories need none" in x.out for x in (a, b)] == [True, False]),
        "--verbose": E("", lambda a, b: ["ok  sqlite" in x.out for x in (a, b)] == [False, True], ""),
        "--repair": E("", lambda a, b: ["needs a repair" in x.out for x in (a, b)] == [False, True], ""),
        "--db": E("docs/tone.md", end(0, 1)), "--pipeline": E("docs/tone.md", end(0, 1)),
        "--set": E("bm25.b=7", end(0, 1)),
    }),
    "help": ("list", {"names": E("search")}),
    "match": (SPOKEN, {}),
    "list": ("--json", {}),
    "show": ("docs/tone.md --json", {
        "key": E("docs/fusion.md", tell("key")), "--section": E("Tone", tell("text")),
        "--from-line": E("3", tell("text")), "--session": E("s", hand_on("opened", "session")),
    }),
    "save": ("docs/tone.md --json", {
        "--append": E("", end(1, 0), TEXT), "--replace": E("", end(1, 2), TEXT),
        "--db": E("elsewhere/memory.db", end(0, 2), "docs/tone.md --dry-run"),
    }),
    "update": ("docs/fusion.md --weight 0.25 --json", {
        "--no-triggers": E("", end(0, 2), "docs/fusion.md --trigger 'how we write'"),
    }),
    "validate": ("docs/tone.md --useful --json", {}),
    "delete": ("--folder docs/storage --dry-run --json", {
        "--tier": E("temporary", show(count, 2, 0)),
        "--older-than": E("9", show(count, 6, 0), "--tier normal --dry-run --json"),
        "--skip-checkpoint": E("", show(lambda x: x["checkpoint"] is None, False, True),
                               "--tier normal --confirm --folder docs/storage --json"),
    }),
    "undelete": ("--json", {"deletion": E("absent", end(0, 2))}),
    "unarchive": ("--json", {"keys": E("docs/tone.md")}),
    "export": ("out --json", {
        "directory": E("one"), "--folder": E("docs/storage", show("memories", 7, 2)),
    }),
    "import": ("more --json", {
        "source": E("docs/storage"), "--merge": E("", end(0, 2), "more --replace"),
        "--replace": E("", end(1, 0), "notes --into docs --json"),
        "--into": E("docs", show("memories.0.key", "more/copy.md", "docs/copy.md")),
        "--dry-run": E("", show(lambda x: (len(x["written"]), x["dry_run"]), (1, False), (0, True)),
                       "more --into new --json"),
        "--db": E("elsewhere/memory.db", lambda _, b: Path("elsewhere/memory.db").exists() and b.json["created"] == 1),
    }),
    "store copy": ("memory.db copy.db --json", {
        "source": E("missing.db", lambda a, b: a.status == 0 and "E010" in b.out),
        "target": E("memory.db", lambda a, b: a.status == 0 and "E014" in b.out),
    }),
    "store verify": ("memory.db memory.db --questions 3 --json", {
        "first": E("missing.db", lambda a, b: a.status == 0 and "E010" in b.out),
        "second": E("missing.db", lambda a, b: a.status == 0 and "E010" in b.out),
        "--questions": E("5", show(lambda x: x["recorded"] + x["made"], 3, 5)),
        "--seed": E("5", lambda a, b: a.json["digests"]["questions"] != b.json["digests"]["questions"]),
        "--verbose": E("", lambda a, b: "store id of both" not in a.out and "store id of both" in b.out,
                       "memory.db memory.db --questions 3"),
    }),
    "lineage": ("docs/tone.md --json", {}),
    "links add": ("docs/tone.md supports docs/cjk.md --json", {}),
    "links remove": ("1 --json", {}),
    "links history": ("--json", {
        "key": E("docs/tone.md", show(count, 4, 1)), "--by": E("entities", show(count, 4, 1)),
    }),
    "links undo": ("1 --json", {"changes": E("2"), "--by": E("entities", line="--by manual --json")}),
    "links review": ("--json", {"--dismiss": E("99", end(0, 2))}),
    "learned forget": ("docs/tone.md --json", {
        "key": E("docs/storage/wal.md", hand_on("forget", "name")),
        "--phrase": E("zeppelin", hand_on("forget", "phrase")), "--all": E("", end(2, 0), ""),
    }),
    "learned judgements": ("--json", {
        "--memory": E("docs/cjk.md", show(lambda x: [row["id"] for row in x["judgements"]], [2, 1], [2])),
        "--session": E("s1", show(lambda x: [row["id"] for row in x["judgements"]], [2, 1], [1])),
    }),
    "learned undo": ("1 --json", {
        "numbers": E("2"), "--memory": E("docs/cjk.md", line="--memory docs/long.md --json"),
        "--session": E("s2", line="--session s1 --json"),
    }),
    "task preflight": (f"specs t {SCORES}", {}),
    "task postflight": (f"specs t1 {SCORES}", {}),
    "task history": ("specs --json", {}),
    "stats": ("--json", {}),
    "graph remove": ("--by entities --json", {"--by": E("manual", end(0, 2))}),
    "checkpoint create": ("a --json", {}),
    "checkpoint list": ("--json", {}),
    "checkpoint restore": ("kept --json", {
        "--no-backup": E("", show(lambda x: x["before"] is None, False, True), "kept --replace --json"),
        "--foreign": E("", end(1, 0), "foreign"),
    }),
    "checkpoint delete": ("kept --json", {}),
    "model list": ("--json", {"--db": E("elsewhere/memory.db")}),
    "model pull": ("fastembed:BAAI/bge-small-en-v1.5 --json", {"name": E("fastembed:BAAI/bge-base-en-v1.5")}),
    "model use": ("bundled --json", {
        "name": E("bundld", end(0, 1)), "--rollback": E("", end(0, 2)),
        "--no-compare": E("", end(0, 2), "bundled --compare-only"),
    }),
    "pipeline check": ("bm25 --json", {"file": E("docs/tone.md", end(0, 2)), "--set": E("bm25.b=7", end(0, 2))}),
    "pipeline plan": (SEARCH, {
        "query": E("'quokka cache'"),
        "--limit": E("90", show(lambda x: {one["limit"] for one in x["plan"]["channels"] if one["asked"]}, {10}, {90}),
                     f"{SEARCH} --pipeline routed.yaml"),
        "--folder": E("docs/storage", show("work.memories_in_scope", 7, 2)),
        "--mode": E("deep", show("plan.mode", "auto", "deep")), "--set": E("bm25.limit=7"),
    }),
    "pipeline diff": ("bm25 rrf --json", {"a": E("rsf"), "b": E("rsf")}),
    # a schema is JSON with and without the option, which is taken because every command takes it
    "pipeline schema": ("", {"--json": E("", lambda a, b: a.json == b.json != {})}),
    "pipeline tune": (f"bm25 {ONE} --out out.yaml --json", {
        "source": E("rrf"), "--db": E("elsewhere/memory.db", line=f"bm25 {OWN} --out out.yaml"),
        "--out": E("nowhere/out.yaml", lambda a, b: bool(a.work) and not b.work and b.status == 2),
    }),
    "pipeline calibrate": (f"default {ONE} --out out.yaml --json", {
        "source": E("quality"), "--db": E("elsewhere/memory.db", line=f"default {OWN} --out out.yaml"),
        "--out": E("nowhere/out.yaml", lambda a, b: bool(a.work) and not b.work and b.status == 2),
        "--false-alarms": E("0.07"),
    }),
    "shadow report": ("--json", {"--html": E("page.html", line=""), "--experiment": E("a" * 12, end(0, 2))}),
    "flags list": ("--json", {"--pipeline": E("catalogue")}),
    "flags promote": ("SPECKIT_RSF_FUSION --json", {"name": E("SPECKIT_MMR"), "--reason": E("why")}),
    "flags demote": ("SPECKIT_RSF_FUSION --json", {"name": E("SPECKIT_MMR")}),
    "eval run": (f"{ONE} --json", {"--db": E("elsewhere/memory.db", line=OWN)}),
    "eval compare": (f"{ONE} --json", {
        "--run-file": E("two.run", line="--run-file one.run --qrels one.txt"),
        "--qrels": E("two.txt", line="--run-file one.run --qrels one.txt"), "--qrels-out": E("out.txt"),
        "--window": E("2", line="--own --pipeline bm25 --pipeline rrf --json"),
    }),
    "eval gate": (f"{ONE} --against rrf --json", {
        "--against": E("rsf"), "--max-loss": E("0.01"), "--markdown": E("docs", end(1, 2)),
        "--good-enough": E("", set_going("gate", "good_enough"), instead="--against rrf"),
    }),
    "eval baseline": (f"{ONE} --json", {}),
    "eval sensitivity": (f"{ONE} --json", {
        "--step": E("fuse"), "--values": E("1,2"), "--db": E("elsewhere/memory.db", line=OWN),
    }),
    "eval judge": (f"{ONE} --pipeline rrf --json", {
        "--experiment": E("0123456789ab", set_going("of_source", "of_experiment"), instead=f"{ONE} --pipeline rrf"),
        "--command": E("''", end(1, 2)), "--timeout": E("0", end(1, 2)), "--by": E("", end(1, 2)),
        "--limit": E("0", end(1, 2)), "--qrels": E("none.txt", end(1, 2)), "--qrels-out": E("", end(1, 2)),
        "--jobs": E("0", end(1, 2)), "--list": E("ours"),
        "--preference": E("", end(1, 2), line=f"{ONE} --pipeline rrf --qrels-out out.txt --json"),
    }),
    "eval replay": ("--pipeline bm25 --json", {
        "--pipeline": E("rrf"), "--against": E("rsf"), "--flag": E("SPECKIT_MMR", instead="--pipeline bm25"),
        "--db": E("more/../memory.db"),
    }),
    "eval scorings": ("--json", {"--db": E("nowhere/memory.db")}),
    "eval history": ("--json", {"--metric": E("MRR@5"), "--db": E("nowhere/memory.db")}),
    "eval ablate": (f"{ONE} --json", {"--db": E("elsewhere/memory.db", line=OWN)}),
    "eval tokens": (f"{ONE} --json", {
        "--budget": E("700"), "--form": E("excerpt=20"), "--db": E("elsewhere/memory.db", line=OWN),
    }),
    "eval make-queries": (f"{ONE} --out made --json", {"--out": E("other")}),
}  # fmt: skip
"""Of each command a line that works, without its name, and the examples of what no rule tries; of others `--json`."""


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


def name_of(parameter: click.Parameter) -> str:
    return parameter.opts[0] if isinstance(parameter, click.Option) else str(parameter.name)


OTHERS: tuple[str, dict[str, Example]] = ("--json", {})
OF_TOOLS = {
    (operation.command, name)
    for operation, _ in operations_of_tools()
    for name, _, option in operation.options()
    if option.tool is not None
}
"""Parameters that a tool has as well: what they do is tried there (`test_tool_parameters.py`)."""
PARAMETERS = {
    (command, name_of(one)): one
    for command, found in commands()
    for one in found.params
    if (command, one.name) not in OF_TOOLS
}


def example_of(command: str, name: str) -> Example:
    """The example of the command's own, that of all options of this name, or what the type of a parameter tells."""
    parameter = PARAMETERS[command, name]
    if example := COMMANDS.get(command, OTHERS)[1].get(name) or ALIKE.get(name):
        return example
    assert isinstance(parameter, click.Option), f"{command} {name} has no example"
    if parameter.is_flag:
        return Example(parameter.secondary_opts[0] if parameter.default is True else "")
    match parameter.type:
        case click.Choice():
            return Example([choice for choice in parameter.type.choices if choice != parameter.default][-1])
        case click.IntRange() | Number():
            return Example("7")
    raise AssertionError(f"{command} {name} has no example")


def pair_of(command: str, name: str) -> tuple[str, str]:
    """The two lines."""
    parameter, example = PARAMETERS[command, name], example_of(command, name)
    tail = COMMANDS.get(command, OTHERS)[0] if example.line is None else example.line
    if name == "--json":
        tail = tail.replace("--json", "")
    if name == "--from-use":
        tail = tail.replace(ONE, OWN)
    first = shlex.split(f"{command} {tail}")
    if isinstance(parameter, click.Argument):
        arguments = [named for owner, named in PARAMETERS if owner == command and not named.startswith("-")]
        place = len(command.split()) + arguments.index(name)
        rest = first[place + (not first[place].startswith("-")) :]
        return shlex.join(first), shlex.join([*first[:place], *shlex.split(example.value), *rest])
    given = example.value if parameter.secondary_opts else f"{name} {example.value}"
    return shlex.join(first), f"{shlex.join(first).replace(example.instead, '')} {given}"


@pytest.fixture(scope="module")
def prepared(unasked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which all commands have something to say: for copies.

    Of its three checkpoints one is of a folder and one of another store; a memory came after them.
    """
    workspace = Path(shutil.copytree(unasked, tmp_path_factory.mktemp("prepared") / "workspace"))
    tone = workspace / "docs" / "tone.md"
    for name, text in {
        "routed.yaml": ROUTING, "more/copy.md": tone.read_text(encoding="utf-8"),
        "notes/tone.md": "# Tone\n\nOf somebody else.\n",
    }.items():  # fmt: skip
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(text, encoding="utf-8")
    with Memory.open(workspace / "memory.db", root=workspace, environ={}) as memory:
        memory.checkpoints.create("kept")
        memory.checkpoints.create("storage", folder="docs/storage")
        memory.checkpoints.create("foreign")
        memory.index_documents([Source("later.md", "# Later\n\nThat came later.\n")])
        memory.graph.add_edges([
            ("docs/tone.md", "caused", "docs/cjk.md", 0.9), ("docs/cjk.md", "supports", "docs/long.md", 0.8),
            ("docs/fusion.md", "enabled", "docs/storage/wal.md", 0.7),
        ])  # fmt: skip
        memory.graph.add_edges([("docs/fusion.md", "supports", "docs/cjk.md", 0.3)], "entities")
        memory.learning.validate("docs/long.md", useful=True, session="s1")
        memory.learning.validate("docs/cjk.md", useful=False, session="s2")
        for task, session in (("t1", ""), ("t2", ""), ("t3", "s")):
            memory.learning.preflight("specs", task, knowledge=40, uncertainty=60, context=50, session=session)
    foreign = workspace / "memory.db.checkpoints" / "foreign.json"
    foreign.write_text(json.dumps(json.loads(foreign.read_text()) | {"store_id": "0" * 32}))
    with EvaluationDatabase.open(workspace / "memory.evaluation.db") as database:
        database.record((), scorings=[ScoreSample("a" * 16, "c" * 12, time.time() - 3600, (1,), (), {})])
        evaluation = StoredEvaluation("e" * 12, "eval compare", time.time() - 3600, "one", "d", {})
        database.keep(evaluation, [EvaluationFigure("c" * 12, "nDCG@10", 0.5, 9)])
    times = tone.stat()
    tone.write_text(tone.read_text(encoding="utf-8") + "\nAnd more.\n", encoding="utf-8")
    os.utime(tone, ns=(times.st_atime_ns, times.st_mtime_ns))
    return workspace


def kept_in(work: dict[str, Any], name: str) -> Callable[..., Any]:
    """Keeps the arguments of work under its name instead of doing it."""

    def keep(*arguments: Any, **named: Any) -> Any:
        named.pop("progress", None)
        work[name] = (*arguments, named) if named else arguments
        raise SpeckitError("E081", "the work is kept, not done")

    return keep


def keep_work(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What long commands would do is kept in the dictionary, not done; what is noted is done as well."""
    work: dict[str, Any] = {}

    def noted(name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        def note(service: Any, *arguments: Any, **named: Any) -> Any:
            work[name] = named
            return operation(service, *arguments, **named)

        return note

    audit = "speckit_memory.server.flags.flag_reading.evidence_in_force"
    monkeypatch.setattr(audit, lambda *given: nullcontext(given))
    for path in WORK:
        monkeypatch.setattr(f"speckit_memory.{path}", kept_in(work, path.rpartition(".")[2]))
    for name, service in NOTED.items():
        monkeypatch.setattr(service, name, noted(name, getattr(service, name)))
    return work


@pytest.fixture
def outcome(
    prepared: Path, patterns_here: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Runs command lines, the last of which counts, in a fresh copy of the workspace."""
    workspace = prepared.with_name("copy")
    for name in [name for name in os.environ if name.startswith("SPECKIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SPECKIT_ROOT", str(workspace))
    monkeypatch.setenv("SPECKIT_DB", str(workspace / "memory.db"))
    work = keep_work(monkeypatch)

    def run_lines(*lines: str) -> Outcome:
        shutil.rmtree(workspace, ignore_errors=True)
        shutil.copytree(prepared, workspace)
        note_as_read(workspace / "memory.db", workspace / "docs" / "tone.md", "docs/tone.md")
        monkeypatch.chdir(workspace)
        status = 0
        for line in lines:
            work.clear()
            capsys.readouterr()
            with monkeypatch.context() as patched:
                if line.startswith("flags audit"):
                    patched.setattr(f"speckit_memory.{AUDIT}", kept_in(work, "audit"))
                status = run(shlex.split(line))
        return Outcome(status, capsys.readouterr().out, dict(work))

    return run_lines


@pytest.fixture(scope="module")
def known() -> dict[tuple[str, ...], Outcome]:
    """Outcomes of the lines that many pairs share."""
    return {}


def test_no_example_is_of_a_parameter_that_is_gone() -> None:
    assert {(command, name) for command, (_, examples) in COMMANDS.items() for name in examples} <= set(PARAMETERS)


@pytest.mark.parametrize(("command", "name"), PARAMETERS)
def test_an_option_does_what_it_says(
    command: str, name: str, outcome: Run, known: dict[tuple[str, ...], Outcome]
) -> None:
    example = example_of(command, name)
    first, second = pair_of(command, name)
    lines = (example.before, first) if example.before else (first,)
    if lines not in known:
        known[lines] = outcome(*lines)
    if example.must in WHOLE and (*lines, "again") not in known:
        known[*lines, "again"] = outcome(*lines)
        assert known[*lines, "again"].lasting == known[lines].lasting, "what differs anyhow shows nothing"

    one, other = known[lines], outcome(*lines[:-1], second)

    assert example.must(one, other), (one, other)


@pytest.mark.parametrize("count", [1, 2])
def test_problems_are_counted_in_words(count: int, outcome: Run) -> None:
    wrong = " --set importance.normal=-7" * (count - 1)

    shown = outcome(f"pipeline check catalogue --set mmr.lambda=7{wrong}")

    assert (shown.status, shown.out.count(" E118 ")) == (2, count), shown.out
    assert f"\n{count} problem{'s' * (count > 1)} in catalogue" in shown.out
