"""A store that may only be read is searched, and says why nothing can be saved."""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.engine import Memory

pytestmark = [pytest.mark.requirement("M1"), pytest.mark.usefixtures("processes")]

COMMAND = Path(sys.executable).parent / "speckit-memory"
_DROP_FROM_BOUNDING_SET = 24
_OVERRIDES = (1, 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: with them, whoever is root may write everywhere."""


def _as_others() -> None:
    """What follows may do no more than the modes of files say, even when it is root."""
    libc = ctypes.CDLL(None)
    for capability in _OVERRIDES:
        libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *arguments], cwd=folder, capture_output=True, text=True, check=False, preexec_fn=_as_others
    )


def _keys(done: subprocess.CompletedProcess[str]) -> list[Any]:
    return [(row["key"], row["score"]) for row in json.loads(done.stdout)["results"]]


def _protect(folder: Path, *, file: bool, around: bool) -> None:
    if file:
        (folder / ".speckit" / "memory.db").chmod(0o400)
    if around:
        (folder / ".speckit").chmod(0o500)
        folder.chmod(0o500)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Path]:
    """A workspace with some notes that are indexed."""
    if sys.platform != "linux":
        pytest.skip("drops capabilities of Linux")
    (tmp_path / "docs").mkdir()
    for name in ("fusion", "ageing", "budget"):
        (tmp_path / "docs" / f"{name}.md").write_text(f"# About {name}\n\nWe decided on {name} by measurement.\n")
    assert _run(tmp_path, "index", "docs").returncode == 0
    yield tmp_path
    tmp_path.chmod(0o700)
    (tmp_path / ".speckit").chmod(0o700)


@pytest.mark.parametrize(
    ("file", "around"), [(True, False), (False, True), (True, True)], ids=["the file", "the folder", "both"]
)
def test_a_protected_store_is_searched(workspace: Path, file: bool, around: bool) -> None:
    search = ("search", "why fusion", "--json")
    before = _run(workspace, *search)
    store = workspace / ".speckit" / "memory.db"
    held = store.read_bytes()
    _protect(workspace, file=file, around=around)

    done = _run(workspace, *search)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert _keys(done) == _keys(before)
    assert _keys(done)

    told = {check["name"]: check for check in json.loads(_run(workspace, "doctor", "--json").stdout)["checks"]}
    assert told["store"]["verdict"] == "ok"
    assert "it is read-only" in told["store"]["detail"]
    assert told["segment"]["verdict"] == "ok"
    assert "is read-only" in told["evaluation"]["detail"]

    refused = _run(workspace, "index", "docs", "--force", "--json")
    error = json.loads(refused.stdout)["error"]
    assert (refused.returncode, error["code"]) == (1, "E020")
    assert "is read-only" in error["message"]
    assert error["actions"] == ["make the file and its folder writable"]
    assert store.read_bytes() == held


def test_what_somebody_else_writes_meanwhile_is_found(workspace: Path) -> None:
    _protect(workspace, file=False, around=True)
    reader = subprocess.Popen(
        [sys.executable, "-c", _READER, str(workspace)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=_as_others,  # noqa: PLW1509
    )  # fmt: skip
    with reader:
        assert reader.stdin is not None
        assert reader.stdout is not None

        def asked() -> list[str]:
            assert reader.stdin is not None
            assert reader.stdout is not None
            reader.stdin.write("\n")
            reader.stdin.flush()
            found: list[str] = json.loads(reader.stdout.readline())
            return found

        assert "docs/fusion.md" in asked()
        workspace.chmod(0o700)
        (workspace / ".speckit").chmod(0o700)
        (workspace / "docs" / "late.md").write_text("# About lateness\n\nA late fusion of lateness.\n")
        with Memory.open(root=workspace, environ={}) as writer:
            (workspace / ".speckit").chmod(0o500)
            writer.index(workspace / "docs")
            assert "docs/late.md" in asked()  # while the writer's log is there
            (workspace / ".speckit").chmod(0o700)
        assert "docs/late.md" in asked()
        reader.stdin.close()


_READER = """
import json, sys
from speckit_memory import Memory
with Memory.open(root=sys.argv[1], environ={}, create=False) as memory:
    for _ in sys.stdin:
        print(json.dumps([row.key for row in memory.search("lateness fusion").results]), flush=True)
"""


def test_the_log_of_who_was_killed_is_read_or_told(workspace: Path) -> None:
    (workspace / "docs" / "late.md").write_text("# About lateness\n\nA late fusion of lateness.\n")
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(workspace)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (workspace / ".speckit" / "memory.db-wal").stat().st_size
    for file in (workspace / ".speckit").glob("memory.db-*"):
        file.chmod(0o400)
    _protect(workspace, file=True, around=True)
    done = _run(workspace, "search", "late fusion", "--json")
    assert done.returncode == 0, done.stdout
    assert "docs/late.md" in [key for key, _ in _keys(done)]

    (workspace / ".speckit").chmod(0o700)
    (workspace / ".speckit" / "memory.db-shm").unlink()
    _protect(workspace, file=True, around=True)
    error = json.loads(_run(workspace, "search", "late fusion", "--json").stdout)["error"]
    assert error["code"] == "E020"
    assert "a log lies next to it" in error["message"]
    assert "-wal" in error["actions"][0]


_KILLED = """
import os, signal, sys
from speckit_memory import Memory
memory = Memory.open(root=sys.argv[1], environ={})
memory.index(sys.argv[1] + "/docs")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_an_old_store_that_may_only_be_read_is_not_brought_up_to_date(workspace: Path) -> None:
    import apsw

    store = workspace / ".speckit" / "memory.db"
    connection = apsw.Connection(str(store))
    last = connection.execute("SELECT max(name) FROM migrations").get
    connection.execute("DELETE FROM migrations WHERE name = ?", (last,))
    connection.close()
    _protect(workspace, file=True, around=True)
    done = _run(workspace, "search", "fusion", "--json")
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"]) == (1, "E020")
    assert "out of date" in error["message"]


def test_nothing_is_written_through_python_either(workspace: Path) -> None:
    _protect(workspace, file=True, around=True)
    done = subprocess.run(
        [sys.executable, "-c", _WRITER, str(workspace)],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=_as_others,
    )
    assert done.stdout.split() == ["E020"] * 4


def test_a_store_that_is_made_writable_is_written_to_without_a_new_start(workspace: Path) -> None:
    _protect(workspace, file=True, around=True)
    done = subprocess.run(
        [sys.executable, "-c", _PATIENT, str(workspace)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_as_others,
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["E020", "docs/late.md", "docs/late.md"]


_PATIENT = """
import sys
from pathlib import Path
from speckit_memory import Memory, SpeckitError
root = Path(sys.argv[1])
with Memory.open(root=root, environ={}) as memory:
    assert memory.search("fusion").results
    try:
        memory.index(root / "docs", force=True)
    except SpeckitError as error:
        print(error.code)
    for path in (root, root / ".speckit", root / ".speckit" / "memory.db"):
        path.chmod(0o700)
    (root / "docs" / "late.md").write_text("# About lateness")
    print(*memory.index(root / "docs").created)
    print(memory.search("lateness").results[0].key)
"""


_WRITER = """
import sys
from pathlib import Path
from speckit_memory import Memory, SpeckitError
root = Path(sys.argv[1])
with Memory.open(root=root, environ={}) as memory:
    first = memory.search("fusion").results[0]
    for write in (
        lambda: memory.documents.save(root / "docs" / "fusion.md", force=True),
        lambda: memory.learning.validate(first.key, useful=True),
        lambda: memory.documents.forget(root / "docs"),
        lambda: memory.graph.add_edges([(first.key, "supports", "docs/ageing.md", 1.0)]),
    ):
        try:
            write()
            print("written")
        except SpeckitError as error:
            print(error.code)
"""
