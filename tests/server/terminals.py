"""The console script on a real terminal of a given width."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len

from tests.server.doors import environment, script

ERASE = "\r\x1b[K"
CTRL_C = b"\x03"
SILENCE = 10.0
"""Seconds after which Ctrl-C is typed again."""
DECIDING = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "TTY_COMPATIBLE")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Shown:
    """A finished run: what the terminal received, and what went elsewhere."""

    status: int
    text: str
    piped: str

    @property
    def lines(self) -> list[str]:
        """The lines that stay on the screen, without styles: what was erased is gone."""
        kept = [line.rsplit(ERASE, 1)[-1] for line in self.text.split("\n")]
        return [_STYLE.sub("", line) for line in kept]

    @property
    def drawn(self) -> list[str]:
        """What stood on the line that is drawn again and again, without styles."""
        return [_STYLE.sub("", part.split("\n")[0]) for part in self.text.split(ERASE)[1:]]

    @property
    def widest(self) -> int:
        """The cells of the longest line that ever stood on the screen."""
        return max(map(cell_len, [*self.lines, *self.drawn]))


def on_terminal(
    root: Path,
    arguments: Sequence[str | Path],
    columns: int,
    env: Mapping[str, str] | None = None,
    *,
    cwd: Path | None = None,
    piped: bool = False,
) -> Shown:
    """Runs the command with its output and errors on a terminal; with `piped`, its standard output in a pipe."""
    known = {name: value for name, value in environment(root).items() if name not in DECIDING}
    environ = {**known, "TERM": "xterm-256color", **(env or {})}
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        [*script(environ), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if piped else terminal,
        stderr=terminal,
        cwd=cwd or root,
        env=environ,
    ) as process:
        os.close(terminal)
        received = bytearray()
        while part := _read(controller):
            received += part
        out = process.stdout.read() if process.stdout else b""
    os.close(controller)
    text = received.decode().replace("\r\n", "\n")
    assert "Traceback" not in text
    return Shown(process.returncode, text, out.decode())


def typed(
    root: Path, arguments: Sequence[str | Path], keys: Sequence[bytes], prompt: bytes, columns: int = 80
) -> Shown:
    """Runs the command in a terminal of its own, and types one of the keys each time the prompt is shown.

    Ctrl-C is typed again after some silence, as a person would: Python sees a signal that comes just before a read
    begins when the read has ended.
    """
    known = {name: value for name, value in environment(root, SPECKIT_DB="").items() if name not in DECIDING}
    environ = {**known, "TERM": "xterm-256color"}
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        [*script(environ), *arguments],
        cwd=root,
        env=environ,
        preexec_fn=lambda: _sit_down(terminal),  # noqa: PLW1509 (no thread runs here)
    ) as process:
        os.close(terminal)
        received, left, key = bytearray(), list(keys), b""
        try:
            while True:
                while key == CTRL_C and not select.select([controller], [], [], SILENCE)[0]:
                    os.write(controller, key)
                if not (part := _read(controller)):
                    break
                received += part
                if left and received.endswith(prompt):
                    key = left.pop(0)
                    os.write(controller, key)
        except BaseException:
            process.kill()  # else nobody would end what waits for a key
            raise
    os.close(controller)
    assert not left, f"never asked for {left}: {received.decode()}"
    text = received.decode().replace("\r\n", "\n")
    assert "Traceback" not in text
    return Shown(process.returncode, text, "")


def _sit_down(terminal: int) -> None:
    """Makes a process one of somebody at a terminal, whom Ctrl-C interrupts even if the tests run in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.login_tty(terminal)


def _read(controller: int) -> bytes:
    """The next part, empty at the end: Linux reports that the other side is closed as an error."""
    try:
        return os.read(controller, 65536)
    except OSError:
        return b""
