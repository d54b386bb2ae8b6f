"""YAML that people write: pipelines, flags and workspace files are sound, or every problem has a line and a column."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hypothesis import strategies as st
from tally import Tally

from speckit_memory.config.flags.flags import read_flags
from speckit_memory.config.workspace.settings import FLAGS_FILE, ROOT_VARIABLE
from speckit_memory.config.workspace.workspace_file import load_workspace_config
from speckit_memory.engine import Memory
from speckit_memory.engine.pipelines import pipelines
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.errors.codes import CODES
from tests.attacks.fuzz.shared import damaged, folder, opened, with_notes
from tests.attacks.fuzz.target import CORPUS, Target, same

ROOT = Path(__file__).resolve().parents[3]
PRESETS = sorted([ROOT / "config/pipeline.yaml", *(ROOT / "config/presets").glob("*.yaml")])
TOKENS = (
    b"\n", b" ", b"  ", b"\t", b"- ", b": ", b":", b"{", b"}", b"[", b"]", b", ", b"#", b"'", b'"', b"|\n", b">\n",
    b"&a ", b"*a", b"<<: *a", b"? ", b"!!str ", b"!!python/object:os.system ", b"!!binary ", b"~", b"null", b"true",
    b"off", b"0", b"-1", b"1e400", b".nan", b"-.inf", b"0x10", b"0o7", b"1_000", b"12:30:00", b"2026-11-22",
    b"999999999999999999999", b"use: bm25", b"use: nothing", b"use: vector", b"limit: 1000", b"limit: 0",
    b"level: chunk", b"level: memory", b"flag: SPECKIT_X", b"replaces: rrf", b"optional: true", b"id: same",
    b"extends: none", b"extends: default", b"extends: self", b"pipeline: x", b"weights: {bm25: 1}",
    b"weights: by_intent", b"candidates:\n", b"fusion:\n", b"rerank: []", b"annotate: []", b"recover: []",
    b"understand: []", b"- {use: mmr}\n", b"- {use: collapse}\n", b"- {use: rrf}\n", b"k: 60",
    b"budgets_ms: {simple: 1}", b"---\n", b"...\n", b"%YAML 1.1\n", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe",
    "é".encode(), "\u2028".encode(), "\u0085".encode(), b"[" * 60, b"{a: " * 30, b"a" * 300, b"flags:\n",
    b"  SPECKIT_RRF: {state: off}\n", b"state: shadow", b"sources:\n", b"  include: [drafts/]\n", b"exclude: ['**']",
    b"!x", b"deadline_ms: 5", b"search:\n",
)  # fmt: skip


@cache
def memory() -> Memory:
    """A store with a few notes, to run what is sound."""
    return opened(with_notes())


@cache
def place() -> Path:
    """Where the files lie."""
    return folder()


def _well_said(problems: list[Problem], text: bytes) -> None:
    assert problems
    lines = 1 + text.count(b"\n") + text.count(b"\r") + text.count("\u2028".encode()) + text.count("\u0085".encode())
    for problem in problems:
        assert problem.code in CODES and problem.code != "E199", problem
        assert problem.message and len(problem.message) < 5000 + len(text), problem
        if problem.code == "E110":  # cannot be read: of bytes that are no text nothing else can be said
            continue
        assert problem.where is not None, problem
        assert problem.where.line >= 1 and problem.where.column >= 1, problem
        assert problem.where.line <= lines + 1, problem


def check_pipeline(text: bytes, tally: Tally) -> None:
    """Checks a pipeline file; runs it when it is sound, and reads back what `show` says of it."""
    file = place() / "mine.yaml"
    file.write_bytes(text)
    tally.tried()
    try:
        problems = pipelines.check(str(file), {})
    except SpeckitError as error:
        problems = list(error.problems)
    if problems:
        return _well_said(problems, text)
    shown = place() / "shown.yaml"
    shown.write_text(pipelines.show(str(file), {}, effective=True), encoding="utf-8")
    mine = memory().using(str(file))
    again = memory().using(str(shown))
    assert mine.pipelines.current.hash == again.pipelines.current.hash
    for query in ("why rank fusion", "REQ-006"):
        found = [each.search(query, deadline_ms=None, now=1.8e9) for each in (mine, again)]
        assert len({row.id for row in found[0].results}) == len(found[0].results) <= 10
        assert [(row.id, row.score) for row in found[0].results] == [(row.id, row.score) for row in found[1].results]
    return None


def check_settings(text: bytes, tally: Tally) -> None:
    """Reads a file as the workspace's, and as its flags."""
    root = place()
    file = root / ".speckit" / "config.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text)
    tally.tried()
    try:
        load_workspace_config(root)
    except SpeckitError as error:
        _well_said(list(error.problems), text)
    (root / FLAGS_FILE).write_bytes(text)
    _, problems = read_flags({ROOT_VARIABLE: str(root)})
    if problems:
        _well_said(problems, text)


def _seeds(kind: str, shipped: list[Path]) -> list[bytes]:
    return [file.read_bytes() for file in [*shipped, *sorted((CORPUS / kind).glob("*.yaml"))]]


_STEPS = st.lists(st.sampled_from(TOKENS), max_size=14).map(b"".join)
_PIPELINES = st.deferred(lambda: st.sampled_from(_seeds("pipelines", PRESETS)))
_SETTINGS = st.deferred(lambda: st.sampled_from(_seeds("settings", [ROOT / "config/flags.yaml"])))
PIPELINES = Target(
    "pipelines", st.one_of(damaged(_PIPELINES, TOKENS, 4), _STEPS), check_pipeline, ".yaml", "pipelines", same, same
)
SETTINGS = Target(
    "settings", st.one_of(damaged(_SETTINGS, TOKENS, 4), _STEPS), check_settings, ".yaml", "settings", same, same
)
