"""An extension with a component of every role that does what the question says, and is honest otherwise.

"zz-signal-exit" in a question asks the signal to exit. Honest answers change nothing.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import ClassVar

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Candidates, Fused, Hits, Notes, Plan, Pool, Query, Rescored
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column, Store
from speckit_memory.pipeline.roles.contracts import About, ChannelParams, Combine, Params, Role, SignalParams
from speckit_memory.pipeline.roles.registry import Registry
from speckit_memory.pipeline.running import runner

PIPE: list[int] = []
"""Held open for as long as this process, or one that it forked, lives."""


def leave() -> None:
    os._exit(7)


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def loop() -> None:
    while True:
        pass


def allocate() -> None:
    hoard = []
    while True:
        hoard.append(bytearray(1 << 24))


def chatter() -> None:
    sys.stdout.write(("y" * 63 + "\n") * 16_384)
    os.write(1, b'{"jsonrpc": "2.0", "id": 1, "result": {}}\n')


def close() -> None:
    os.closerange(0, os.sysconf("SC_OPEN_MAX"))


def quit_softly() -> None:
    raise SystemExit(3)


def garble(data: bytes = b"\x80\x04garbage" * 4096) -> None:
    for descriptor in Path("/proc/self/fd").iterdir():  # a socket keeps the number it had in the process of the test
        with suppress(OSError):
            if str(descriptor.readlink()).startswith("socket"):
                os.write(int(descriptor.name), data)


def oversize() -> None:
    garble(struct.pack("<4sIQ", b"smx1", 2**32 - 1, 2**64 - 1))


def multiply() -> None:
    for _ in range(3):
        if os.fork() == 0:
            signal.pause()
            os._exit(0)


def rewrite() -> None:
    np.lexsort = np.isfinite = np.zeros = lambda *_, **__: np.array([])  # type: ignore[assignment, misc]
    runner.Runner.run = lambda *_: None  # type: ignore[method-assign, assignment]
    Ranking.__len__ = lambda _: 0  # type: ignore[attr-defined]
    sys.modules.pop("speckit_memory.pipeline.running.apply", None)
    sys.modules["speckit_memory.pipeline.guards.checks"] = None  # type: ignore[assignment]


def hunt() -> None:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        for value in frame.f_locals.values():
            if isinstance(value, Ranking):
                object.__setattr__(value, "scores", np.zeros(len(value.ids)))
        frame = frame.f_back
    for found in gc.get_objects():
        if type(found).__name__ in ("Pool", "Candidates", "Ranking"):
            for name in ("ids", "scores", "parents"):
                with suppress(AttributeError, TypeError):
                    object.__setattr__(found, name, np.zeros(1))


DEEDS = {
    "exit": leave, "crash": crash, "loop": loop, "allocate": allocate, "chatter": chatter, "close": close,
    "quit": quit_softly, "garble": garble, "oversize": oversize, "multiply": multiply, "rewrite": rewrite, "hunt": hunt,
}  # fmt: skip


class Hostile:
    about = About(features=("C2",))

    def __init__(self, params: Params) -> None:
        self.params = params
        if (pipe := getattr(params, "pipe", "")) and not PIPE:
            PIPE.append(os.open(pipe, os.O_WRONLY))

    def asked(self, role: str, query: Query) -> None:
        for wanted, deed in re.findall(r"zz-(\w+)-(\w+)", query.text):
            if wanted == role and deed in DEEDS:
                DEEDS[deed]()


class Piped(Params):
    pipe: str = Field("", description="A named pipe to hold open.")


class PipedChannel(ChannelParams):
    pipe: str = Field("", description="A named pipe to hold open.")


class Understander(Hostile):
    """Understands nothing."""

    Params = Piped

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:
        self.asked("understander", query)
        return plan


class Channel(Hostile):
    """Finds nothing."""

    Params = PipedChannel
    about = About(features=("C2",), gives=Scale.UNIT)

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        self.asked("channel", query)
        return Hits(np.empty(0, np.int64), np.empty(0), Scale.UNIT)


class Recoverer(Hostile):
    """Gives up."""

    Params = Piped

    def recover(self, query: Query, plan: Plan, store: Store) -> Plan:
        self.asked("recoverer", query)
        return plan


class Fuser(Hostile):
    """Gives each candidate the same."""

    Params = Piped
    about = About(features=("C2",), gives=Scale.UNIT)

    def fuse(self, query: Query, candidates: Candidates) -> Fused:
        self.asked("fuser", query)
        return Fused(("all",), np.ones((len(candidates), 1)))


class Signal(Hostile):
    """Adds nothing."""

    Params = SignalParams
    combine: ClassVar[Combine] = "multiply"

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column:
        self.asked("signal", query)
        return np.ones(12_000_000 if "zz-signal-bulk" in query.text else len(pool))


class Reranker(Hostile):
    """Leaves every score as it is."""

    Params = Piped

    def rerank(self, query: Query, pool: Pool, store: Store) -> Rescored:
        self.asked("reranker", query)
        return Rescored(pool.score.copy())


class Annotator(Hostile):
    """Notes nothing."""

    Params = Piped

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes:
        self.asked("annotator", query)
        return Notes(overall={"bulk": "b" * 10_000_000} if "zz-annotator-bulk" in query.text else {})


def register(registry: Registry) -> None:
    registry.add(Role.UNDERSTANDER, Understander, "hostile_understander")
    registry.add(Role.CHANNEL, Channel, "hostile_channel")
    registry.add(Role.RECOVERER, Recoverer, "hostile_recoverer")
    registry.add(Role.FUSER, Fuser, "hostile_fuser")
    registry.add(Role.SIGNAL, Signal, "hostile_signal")
    registry.add(Role.RERANKER, Reranker, "hostile_reranker")
    registry.add(Role.ANNOTATOR, Annotator, "hostile_annotator")
