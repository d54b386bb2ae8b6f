"""A disk without room under a running server: every tool answers, nothing is lost, and all goes on once there is room.

In two ways: a small file system of its own, where the kernel allows one to make it, and a limit to the size of files,
which any process may be given. Either is set and lifted while the server runs.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from raw_server import RawServer
from tally import Tally

from tests.attacks.test_tools import DEFECTS, TASK, USUAL
from tests.server.doors import COMMAND, environment

MEGABYTES = 40
"""Of the small file system: a workspace with its store take a few, and deleting copies the store first."""
WRITING: dict[str, dict[str, Any]] = {
    "memory_save": {"filePath": "docs/new.md", "content": "# New\n\nThe gateway retries five times.\n"},
    "memory_update": {"id": 2, "importanceWeight": 0.75},
    "memory_validate": {"id": 1, "wasUseful": True},
    "memory_causal_link": {"sourceId": 3, "targetId": 1, "relation": "supports"},
    "memory_delete": {"id": "docs/aside.md", "confirm": True},
    "memory_bulk_delete": {"tier": "temporary", "confirm": True},
    "task_preflight": TASK,
    "checkpoint_create": {"name": "full"},
    "memory_index_scan": {"force": True},
}
"""Calls that write, to be refused."""
Room = tuple[Callable[[], None], Callable[[], None]]
"""Takes all room, and gives it back."""


@contextmanager
def on_small_disk(root: Path, *, writable: bool = True) -> Iterator[tuple[RawServer, Room]]:
    """A server whose workspace lies on a file system of a few megabytes, which nobody else sees."""
    closed = "" if writable else 'mount -o remount,ro "$1" && '
    script = (
        f'mount -t tmpfs -o size={MEGABYTES}m tmpfs "$1" && cp -a "$2/." "$1" && '
        f'{closed}cd "$1" && echo mounted && exec "$3" serve --no-warm-up'
    )
    place = root.parent / "disk"
    place.mkdir()
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh", place, root, COMMAND]
    with started(command, root, environment(place)) as process:
        assert process.stdout is not None
        if process.stdout.readline() != b"mounted\n":
            pytest.skip("a file system of one's own cannot be made here; the limit of file sizes is tested")
        filler = Path(f"/proc/{process.pid}/root{place}/filler")

        def fill() -> None:
            with filler.open("wb", buffering=0) as file, suppress(OSError):
                while file.write(bytes(4096)):
                    pass
            assert shutil.disk_usage(filler.parent).free == 0

        yield RawServer(process), (fill, filler.unlink)


@contextmanager
def within_limits(root: Path) -> Iterator[tuple[RawServer, Room]]:
    """A server that may not write a byte to a file from a moment on."""
    with started([COMMAND, "serve", "--no-warm-up"], root, environment(root)) as process:
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)

        def limit(size: int) -> None:
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, most))

        yield RawServer(process), (lambda: limit(0), lambda: limit(most))


@contextmanager
def started(command: list[Any], root: Path, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the command, killed at the end unless it has ended."""
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=none, env=env, cwd=root) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.requirement("T26.disk")
@pytest.mark.parametrize("server_on", [on_small_disk, within_limits], ids=["small disk", "limit"])
@pytest.mark.usefixtures("processes")
def test_every_tool_answers_without_room_and_nothing_is_lost(
    unasked: Path, tmp_path: Path, tally: Tally, server_on: Callable[[Path], Any]
) -> None:
    root = Path(shutil.copytree(unasked, tmp_path / "workspace"))
    (root / "docs/aside.md").write_text("# Aside\n\nTo be deleted.\n")
    (root / "docs/notes.md").write_text("---\nimportance_tier: temporary\n---\n# Notes\n\nTo be deleted too.\n")
    with server_on(root) as (server, (fill, free)):
        server.start()
        for file in ("docs/aside.md", "docs/notes.md"):
            assert not server.call(file, "memory_save", {"filePath": file}).get("isError")
        before = keys(server)

        fill()
        refused = {}
        for tool, usual in USUAL.items():
            result = server.call(f"full {tool}", tool, WRITING.get(tool, usual))
            if result.get("isError"):
                error = result["structuredContent"]["error"]
                refused[tool] = error["code"]
                assert error["code"] not in DEFECTS, error
                assert error["hint"], tool
                if tool in WRITING:
                    assert re.search(r"\bdisk (space|has room)", " ".join(error["actions"])), error
            tally.survived()
        assert set(WRITING) <= set(refused), "these said that they have written"
        assert set(refused.values()) <= {"E010", "E060", "E062", "E080", "E081", "E101"}
        assert keys(server) == before

        free()
        for tool, arguments in WRITING.items():
            result = server.call(f"free {tool}", tool, arguments)
            assert not result.get("isError"), (tool, result["structuredContent"])
        assert keys(server) == sorted({*before, "docs/new.md"} - {"docs/aside.md", "docs/notes.md"})
        health = server.call("health", "memory_health")["structuredContent"]["data"]
        assert health["ok"], health
        assert server.close() == 0


def keys(server: RawServer) -> list[str]:
    """The keys of all memories."""
    listed = server.call(f"list {os.urandom(4).hex()}", "memory_list", {"limit": 50})
    return sorted(row["key"] for row in listed["structuredContent"]["data"]["memories"])
