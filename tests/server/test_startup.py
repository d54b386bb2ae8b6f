from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile

import pytest
from raw_server import INITIALIZE, INITIALIZED, call_of, raw_server

from tests.server.doors import COMMAND, call, environment

pytestmark = pytest.mark.usefixtures("processes")

HEAVY = {"numpy", "scipy", "tokenizers", "markdown_it", "evaluation", "Stemmer", "wordllama"}
# the name of rich itself shows up for vain attempts to import it; these are what it imports when it is there
RICH = {"rich._extension", "rich.cells", "rich.segment", "rich.style", "rich.text", "pygments"}
IN_VAIN = {"org", "sitecustomize", "usercustomize"}
"""What the interpreter looks for and does not find."""
READERS = re.compile(r"speckit_memory\.memory\.((?:indexing|intake|parsing|scanning|models)\.[\w.]+)")
"""Modules that read documents and questions."""
SEARCH = call_of(3, "memory_search", {"query": "rank fusion"})
LIST_TOOLS = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


def imported(
    root: Path, arguments: list[str], sent: list[dict[str, object]]
) -> tuple[set[str], list[dict[str, object]]]:
    """The top-level packages that a run of the console script imported, and its answers."""
    names, answers, _ = modules(root, arguments, sent)
    return {name.partition(".")[0] for name in names}, answers


def modules(
    root: Path, arguments: list[str], sent: list[dict[str, object]]
) -> tuple[set[str], list[dict[str, object]], list[str]]:
    """The modules that a run of the console script imported, its answers, and the other lines of standard error."""
    with (
        TemporaryFile() as errors,  # a pipe that nobody reads would fill up
        subprocess.Popen(
            [sys.executable, "-X", "importtime", COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(root),
            cwd=root,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        answers = []
        for message in sent:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            if "id" in message:
                answers.append(json.loads(process.stdout.readline()))
        process.communicate()
        assert process.returncode == 0
        errors.seek(0)
        err = errors.read()
    names = re.findall(rb"^import time: +\d+ \| +\d+ \| +(\S+)$", err, re.MULTILINE)
    logged = [line for line in err.decode().splitlines() if not line.startswith("import time:")]
    return {name.decode() for name in names}, answers, logged


@pytest.mark.requirement("I6.lazy", "T27.light")
def test_nothing_heavy_is_imported_before_the_first_tool_call(indexed: Path) -> None:
    packages, answers = imported(indexed, ["serve", "--no-warm-up"], [INITIALIZE, LIST_TOOLS])
    assert [answer["id"] for answer in answers] == [0, 2]
    assert "mcp" in packages
    assert packages & HEAVY == set()


@pytest.mark.requirement("T27.shared")
def test_a_front_imports_no_library_but_click(workspace: Path) -> None:
    packages, answers = imported(workspace, ["serve", "--shared", "--no-warm-up"], [INITIALIZE, LIST_TOOLS])
    assert [answer["id"] for answer in answers] == [0, 2]
    assert "click" in packages
    assert packages & (HEAVY | {"mcp", "mcp_types", "pydantic", "anyio", "apsw", "yaml", "structlog"}) == set()


@pytest.mark.requirement("T27")
@pytest.mark.parametrize("asked", [[LIST_TOOLS], [INITIALIZED, SEARCH]], ids=["start", "search"])
def test_the_server_does_without_the_library_that_draws_on_terminals(
    indexed: Path, asked: list[dict[str, object]]
) -> None:
    names, answers, logged = modules(indexed, ["serve", "--no-warm-up"], [INITIALIZE, *asked])
    assert "result" in answers[-1]
    assert {"mcp", "structlog"} <= names
    assert names & RICH == set()
    assert [json.loads(line)["level"] for line in logged]  # as JSON, as ever: no handler of another's making


def test_commands_that_draw_on_no_terminal_leave_the_library_for_it_alone(indexed: Path) -> None:
    names, _, _ = modules(indexed, ["pipeline", "schema"], [])
    assert names & RICH == set()


def test_help_of_the_whole_command_line_imports_no_library_but_click(indexed: Path) -> None:
    packages, _ = imported(indexed, ["--help"], [])
    assert "click" in packages
    assert packages & (HEAVY | {"mcp", "pydantic", "apsw", "yaml", "structlog"}) == set()


def test_a_search_at_the_command_line_does_not_load_the_library_for_the_log(indexed: Path) -> None:
    packages, _ = imported(indexed, ["search", "rank fusion"], [])
    assert "numpy" in packages
    assert "structlog" not in packages


def test_a_search_at_the_command_line_imports_what_stands_in_the_list_and_nothing_else(indexed: Path) -> None:
    names, _, _ = modules(indexed, ["search", "how are rankings fused"], [])
    packages = {name.partition(".")[0] for name in names}
    assert {name for name in packages - sys.stdlib_module_names - IN_VAIN if not name.startswith("_")} == {
        *("Stemmer", "annotated_types", "apsw", "click", "numpy", "pydantic", "pydantic_core", "speckit_memory"),
        "rich",  # its table of cell widths alone, which cuts lines
        *("typing_extensions", "typing_inspection", "yaml"),
    }
    # `email` and `socket` are there for pydantic, which looks for its plugins in the metadata of packages
    assert packages & {"asyncio", "concurrent", "http", "multiprocessing", "sqlite3", "ssl", "unittest", "xml"} == set()
    assert names & {"numpy.ma", "numpy.testing", "numpy.random", "numpy.fft", "pydantic.networks"} == set()
    assert {found[1] for name in names if (found := READERS.fullmatch(name))} == {
        *("intake.secret_forms", "intake.secrets"),  # a question is kept without its secrets
        *("models.crossencoders", "models.embedders", "models.passage_vectors"),
        *(f"models.crossencoders.{module}" for module in ("choice", "guarded")),
        *(
            f"models.embedders.{module}"
            for module in (
                *("choice", "counting", "merge_table", "model_facts", "model_folder", "protocol", "static"),
                *("token_rows", "user_cache"),
            )
        ),
        *(
            f"parsing.{module}"
            for module in ("acronyms", "analysis", "dates", "encoding", "identifiers", "keys", "limits")
        ),
        *("parsing.declarations", "parsing.declarations.metadata"),
        *("parsing.markdown", "parsing.markdown.anchors", "parsing.markdown.title"),
    }


@pytest.mark.requirement("T27")
def test_the_store_is_loaded_soon_after_the_first_answer(workspace: Path) -> None:
    """A store that is open has a log beside it: it is there although no tool was called."""
    log = workspace / "memory.db-wal"
    assert not log.exists()
    with raw_server(workspace, spawned=True) as server:
        server.start()
        while not log.exists():
            assert server.process.poll() is None
        assert server.close() == 0  # also in the middle of the warm-up


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--pipeline", "defualt"], "E121"),
        (["--pipeline", "broken.yaml"], "E115"),
        (["--pipeline", "values.yaml"], "E118"),
        (["--set", "bm25.limt=3"], "E118"),
        (["--set", "bm25.b=7"], "E118"),
        (["--db", "text.db"], "E024"),
        (["--db", "."], "E014"),
    ],
)
def test_a_server_with_a_configuration_that_cannot_work_does_not_start(
    tmp_path: Path, arguments: list[str], code: str
) -> None:
    (tmp_path / "broken.yaml").write_text("pipeline: mine\nfusoin: []\n")
    (tmp_path / "values.yaml").write_text(
        "pipeline: mine\ncandidates: {channels: {change: [{id: bm25, limit: many}]}}\n"
    )
    (tmp_path / "text.db").write_bytes(b"this is no database at all" * 50)
    ran = call(tmp_path, ["serve", *arguments])
    assert (ran.status, ran.out) == (2, "")
    assert code in ran.err
