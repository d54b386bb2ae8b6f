"""Every command on terminals of several widths and kinds, in pipes, and in the C locale."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.server.doors import COMMAND, call, environment, script
from tests.server.terminals import on_terminal

STYLE = re.compile(r"\x1b\[[0-9;]*m")
COMMANDS = {
    "search": ["search", "why are ranks fused", "--explain"],
    "search CJK": ["search", "検索の設計", "--explain"],
    "why not": ["search", "backups", "--why-not", "docs/fusion.md", "--limit", "1"],
    "loose words": ["search", "why", "are", "ranks", "fused", "--limit", "1"],
    "plan": ["pipeline", "plan", "why are ranks fused"],
    "flags": ["flags", "list"],
    "doctor": ["doctor", "-v"],
    "index": ["index", "docs"],
    "help": ["search", "--help"],
    "unknown command": ["serach"],
    "broken pipeline": ["pipeline", "check", "broken.yaml"],
    "missing store": ["search", "x", "--db", "none.db"],
}
COPIED = re.compile(r"  try:  |\S+:\d+:\d+: E\d+$")
"""Lines that stay whole: steps to try, and places in a file."""
MEASURED = re.compile(
    r"[\d.]+ (ms|s)\b( \(budget \d+ ms\))?|\s+\d+\.\d{3}(?=\s+\d+\s+\d+  )| +ms(?=  rows)"
    r"|(No single|The smallest single) change[^\n]*"
)
"""Times, also those of the steps, whose digits decide how wide their column is; and what the search for a smallest
change finds in the time that it has, on one line."""


@pytest.fixture(scope="module")
def place(indexed: Path) -> Path:
    (indexed / "broken.yaml").write_text(
        "pipeline: mine\nfusoin:\n  - {use: rrf}\nrerank:\n  - {use: nothing_like_any_component_there_is}\n"
    )
    return indexed


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "help"])
@pytest.mark.usefixtures("processes")
def test_nothing_is_wider_than_the_terminal(place: Path, name: str, columns: int) -> None:
    shown = on_terminal(place, COMMANDS[name], columns)
    wide = [line for line in shown.lines if cell_len(line) > columns and not COPIED.match(line)]
    assert wide == []
    assert len("".join(shown.lines)) > 20


@pytest.mark.parametrize("name", ["flags", "unknown command", "broken pipeline", "missing store"])
@pytest.mark.usefixtures("processes")
def test_a_narrow_terminal_loses_nothing(place: Path, name: str) -> None:
    wide, narrow = (on_terminal(place, COMMANDS[name], columns).lines for columns in (400, 40))
    packed = re.sub(r"\s", "", "".join(narrow))
    wide = [line for line in wide if " | " not in line]  # lines of the file itself, which need their room
    assert [word for line in wide for word in line.split() if word not in packed] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_a_pipe_gets_the_same_lines_whatever_the_window(place: Path, name: str) -> None:
    narrow, wide = (
        MEASURED.sub("", call(place, COMMANDS[name], {"COLUMNS": columns, "LINES": "24"}).out)
        for columns in ("80", "200")
    )
    assert "\x1b" not in wide
    if name != "help":  # click's
        assert narrow == wide


def test_a_pipe_gets_every_row_of_a_table_in_one_line(place: Path) -> None:
    head, *rows = call(place, ["flags", "list"]).out.splitlines()
    known = call(place, ["flags", "list", "--json"]).json["flags"]
    assert head.split()[:5] == ["flag", "state", "pipelines", "group", "owner"]
    assert [row.split()[0] for row in rows] == [flag["name"] for flag in known]
    assert all(flag["evidence"] in row for flag, row in zip(known, rows, strict=True))


@pytest.mark.parametrize(
    ("env", "coloured"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"CLICOLOR": "0"}, False),
    ],
)
@pytest.mark.parametrize("name", ["search", "doctor", "unknown command", "broken pipeline"])
@pytest.mark.usefixtures("processes")
def test_the_environment_decides_about_colour(place: Path, name: str, env: dict[str, str], coloured: bool) -> None:
    shown = on_terminal(place, COMMANDS[name], 30, env)
    assert (STYLE.search(shown.text) is not None) is coloured
    assert "\x1b" not in STYLE.sub("", shown.text)


@pytest.mark.parametrize(
    ("env", "coloured"), [({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "0"}, False), ({}, False)]
)
def test_colour_in_a_pipe_must_be_asked_for(place: Path, env: dict[str, str], coloured: bool) -> None:
    bare = dict.fromkeys(("NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR"), "")
    ran = call(place, COMMANDS["search"], {**bare, "TERM": "xterm", **env})
    assert ("\x1b[" in ran.out) is coloured


@pytest.mark.parametrize("name", COMMANDS)
def test_the_c_locale_hinders_no_command(place: Path, name: str) -> None:
    env = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    usual, bare = call(place, COMMANDS[name]), call(place, COMMANDS[name], env)
    assert bare.status == usual.status
    assert "E199" not in bare.out + bare.err
    assert len(bare.out.splitlines()) == len(usual.out.splitlines())


@pytest.mark.parametrize("name", ["search", "flags", "plan", "help"])
@pytest.mark.usefixtures("processes")
def test_a_reader_who_leaves_hears_of_no_error(place: Path, name: str) -> None:
    with subprocess.Popen(
        [*script(environment(place)), *COMMANDS[name]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place,
        env=environment(place),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        os.read(process.stdout.fileno(), 1)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() in (0, 141)


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize("name", ["search", "doctor", "index", "unknown command"])
@pytest.mark.usefixtures("processes")
def test_a_caller_may_close_what_nobody_reads(place: Path, name: str, closed: str) -> None:
    line = f"{shlex.join([str(COMMAND), *COMMANDS[name]])} {closed}"
    done = subprocess.run(line, shell=True, cwd=place, env=environment(place), capture_output=True, check=False)
    assert done.returncode == (2 if name == "unknown command" else 0)
    assert b"Traceback" not in done.stderr


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judged") / "tiny"
    (folder / "qrels").mkdir(parents=True)
    topics = ("fusion of ranks", "write-ahead logging", "vector quantisation", "causal graphs")
    corpus = [{"_id": f"d{n}", "title": t, "text": f"All about {t}.", "metadata": {}} for n, t in enumerate(topics)]
    queries = [{"_id": f"q{n}", "text": t, "metadata": {}} for n, t in enumerate(topics)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in corpus))
    (folder / "queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in queries))
    judged = "".join(f"q{n}\td{n}\t1\n" for n in range(4))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    return folder


@pytest.mark.parametrize("columns", [20, 40, 62, 80, 200])
@pytest.mark.usefixtures("processes")
def test_figures_fit_the_terminal_and_none_is_left_out(dataset: Path, columns: int) -> None:
    pipelines = ["--pipeline", "bm25", "--pipeline", "fts5"]
    shown = on_terminal(dataset, ["eval", "run", "--dataset", dataset, *pipelines, "-v"], columns)
    assert shown.status == 0, shown.text
    assert shown.widest <= columns
    text = " ".join(" ".join(shown.lines).split())
    for name in ("nDCG@10", "MRR@5", "Recall@20", "Hit@1", "p50", "p95", "degraded", "intent", "best in its column"):
        assert name in text
    assert text.count("1.0000*") == 8


@pytest.mark.parametrize("columns", [40, 120])
@pytest.mark.usefixtures("processes")
def test_what_each_step_is_worth_fits_the_terminal(dataset: Path, columns: int) -> None:
    shown = on_terminal(dataset, ["eval", "ablate", "--dataset", dataset, "--queries", "2"], columns)
    assert shown.status == 0, shown.text
    assert shown.widest <= columns
    assert "what each step adds" in " ".join(" ".join(shown.lines).split())
