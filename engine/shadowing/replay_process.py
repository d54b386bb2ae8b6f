"""Runs the process that replays recorded queries for one variant, and controls it from the server.

The variant cannot harm the server or its memory: a process that does not answer is killed.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from mmap import PAGESIZE
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO

from speckit_memory.engine.shadowing.replayer import ENDED, Replayer, ReplayTask
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    Arm,
    Observation,
    Replay,
    StepCost,
    VariantRecord,
)
from speckit_memory.pipeline.process.python_process import bound_memory, expect_within, start_python

STARTING_SECONDS = 60.0
"""How long a process may take to open the store."""
ANSWER_SECONDS = 10.0
"""Time limit of one step. A step that takes longer is stopped by killing its process."""
MEMORY_BYTES = 1 << 30
"""Address space that the process may use on top of the open store, on platforms with such a limit."""
ORPHAN_SECONDS = 2.0
"""If its parent is gone, a process ends this long after its step timed out."""
NICENESS = 10


class ReplayProcessEnded(Exception):  # noqa: N818 -- the name is recorded next to those of component errors
    """The process ended during a replay, by itself or because it was killed; the message says how and in which step."""


class ReplayProcess:
    """A child process at low priority, started by the constructor, for one thread. An exception ends the process."""

    def __init__(self, task: ReplayTask) -> None:
        """Starts the process and waits until it has opened the store.

        Raises SpeckitError if it cannot be started or cannot open the store, and ReplayProcessEnded if it ends before.
        """
        try:
            self._process = start_python(
                __name__, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            raise SpeckitError("E040", f"no process can be started for replays: {error.strerror or error}") from None
        self._task = task
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        threading.Thread(target=self._read, name="replays", daemon=True).start()
        try:
            self._send(pickle.dumps(task))
            self._received(STARTING_SECONDS)
        except BaseException:
            self.end()
            raise

    def replay(self, seen: Observation) -> Replay:
        """Both answers to a recorded query. Raises ReplayProcessEnded, and SpeckitError for an unreadable store."""
        self._send(pickle.dumps(seen))
        return _replay_of(self._received(ANSWER_SECONDS))

    def end(self) -> None:
        """Kills the process and everything in its session. May be called again."""
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, 9)
            else:
                self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                stream and stream.close()

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        with suppress(OSError, ValueError):
            for line in stream:
                self._lines.put(line)
        # nothing is sent as an empty line: this one marks the end
        self._lines.put(b"")

    def _send(self, message: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # a process that has ended is noticed by `_received`
            # to the child: an 8-byte big-endian length and the message; from the child: one JSON document per line
            self._process.stdin.write(len(message).to_bytes(8, "big") + message)
            self._process.stdin.flush()

    def _received(self, seconds: float) -> Mapping[str, Any]:
        """The next answer. Each step that begins gets `seconds` anew."""
        step = ""
        while True:
            try:
                line = self._lines.get(timeout=seconds)
                message: Mapping[str, Any] = json.loads(line) if line else {}
            except (Empty, ValueError) as error:
                self.end()
                why = "Timeout" if isinstance(error, Empty) else "Garbled"
                raise ReplayProcessEnded(f"{ENDED}{why} in {step or 'the start'}") from None
            if not message:
                self.end()
                status = self._process.returncode
                why = signal.Signals(-status).name if status < 0 else f"Status{status}"
                raise ReplayProcessEnded(f"{ENDED}{why} in {step or 'the start'}")
            if "wrong" in message:
                self.end()
                raise SpeckitError("E040", f"recorded queries cannot be replayed: {message['wrong']}")
            if "step" not in message:
                return message
            step = message["step"]


def main() -> None:
    """The child's entry point: serves until its parent is gone."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # components may print; stdout carries the protocol alone
    given = sys.stdin.buffer
    with suppress(OSError, AttributeError):
        os.nice(NICENESS)
    with suppress(BrokenPipeError):
        try:
            _serve(Replayer(pickle.loads(_message(given))), given, out)
        except SpeckitError as error:
            _tell(out, {"wrong": str(error)})
    os._exit(0)  # threads of components must not keep the process alive


def _serve(replayer: Replayer, given: BinaryIO, out: BinaryIO) -> None:
    bound_memory(_most_memory(), for_good=False)
    _tell(out, {"ready": True})
    while message := _message(given):
        found = replayer.replay(pickle.loads(message), lambda step: _begin(step, out))
        expect_within(None)
        _tell(out, asdict(found))


def _begin(step: str, out: BinaryIO) -> None:
    expect_within(ANSWER_SECONDS + ORPHAN_SECONDS)
    _tell(out, {"step": step})


def _most_memory() -> int:
    """The memory in use now plus `MEMORY_BYTES`; 0 if the platform does not report the former."""
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        return pages * PAGESIZE + MEMORY_BYTES
    return 0


def _message(stream: BinaryIO) -> bytes:
    return stream.read(int.from_bytes(stream.read(8), "big"))


def _tell(out: BinaryIO, message: Mapping[str, Any]) -> None:
    out.write(json.dumps(message).encode() + b"\n")
    out.flush()


def _answer_of(plain: Mapping[str, Any]) -> AnswerRecord:
    steps = tuple(StepCost(**step) for step in plain["steps"])
    rows = {name: tuple(plain[name]) for name in ("memories", "scores")}
    return AnswerRecord(**{**plain, **rows, "steps": steps})


def _replay_of(plain: Mapping[str, Any]) -> Replay:
    variant = VariantRecord(**{**plain["variant"], "answer": _answer_of(plain["variant"]["answer"]), "teams": ()})
    return Replay(**{**plain, "arm": Arm(**plain["arm"]), "control": _answer_of(plain["control"]), "variant": variant})
