"""Things that a neighbour process may put in the place of a file or folder, between a look and the opening."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

SECRET = "zebrafish outside of the workspace"
WAIT_SECONDS = 120
"""How long a piece of work may take before it counts as hanging; it never takes a hundredth of that."""


def outside(root: Path) -> Path:
    """A folder beside the workspace with files of the same names, whose text must never be stored."""
    folder = root.parent / "outside"
    folder.mkdir(exist_ok=True)
    for name in ("a.md", "b.md"):
        (folder / name).write_text(f"# Secret\n\n{SECRET}\n", encoding="utf-8")
    return folder


def _gone(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(path.parent)  # the address of a socket is short
        try:
            listener.bind(path.name)
        finally:
            os.chdir(here)


def _device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # as /dev/zero: it never ends
    except PermissionError:
        path.symlink_to("/dev/zero")


KINDS: dict[str, Callable[[Path, Path], None]] = {
    "a link to a file outside": lambda path, other: path.symlink_to(other / path.name),
    "a relative link outside": lambda path, other: path.symlink_to(os.path.relpath(other / "a.md", path.parent)),
    "a link to a folder outside": lambda path, other: path.symlink_to(other),
    "a link to a device": lambda path, _: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path, _: path.symlink_to(path.name),
    "a named pipe": lambda path, _: os.mkfifo(path),
    "a socket": lambda path, _: _bind(path),
    "a device": lambda path, _: _device(path),
    "a folder": lambda path, _: path.mkdir(),
}  # fmt: skip


def swap(path: Path, kind: str, other: Path) -> None:
    """Puts something of this kind in the place of a file."""
    _gone(path)
    KINDS[kind](path, other)


def in_time(work: Callable[[], Any]) -> Any:
    """What the work returns. Fails when it does not come to an end; what it raises is raised."""
    outcome: list[Any] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            raised.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive(), "it hangs"
    if raised:
        raise raised[0]
    return outcome[0]
