"""A distribution with a signal that raises what the query names, installed as a user would install one."""

from __future__ import annotations

from pathlib import Path

from isolated.distributions import installed

SIGNAL = '''
import asyncio
import os
import sys

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.roles.contracts import About, SignalParams
from speckit_memory.pipeline.model.scales import Scale


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


class Unspeakable2(BaseException):
    def __str__(self):
        raise SystemExit("no text")

    __repr__ = __str__


class Endless(Exception):
    def __str__(self):
        return "secret " * 5_000_000


class Misnamed(Exception):
    pass


Misnamed.__name__ = "N" * 100_000


def recurse():
    return recurse() + 1


def group():
    raise BaseExceptionGroup("many", [KeyboardInterrupt(), SystemExit(3), ValueError("secret")])


def chained():
    error = ValueError("secret")
    error.__cause__ = error.__context__ = error
    raise error


def raising(error):
    def act():
        raise error
    return act


def printing():
    print("x" * 100_000)
    sys.stdout.flush()
    sys.stderr.write("y" * 300_000 + "\\n")
    os.write(1, b'{"jsonrpc":"2.0","id":1,"result":{}}\\n')
    sys.__stdout__.write("straight to the client\\n")
    sys.__stdout__.flush()
    raise SystemExit("after much talk")


ACTS = {
    "SystemExit": raising(SystemExit(0)),
    "SystemExitText": raising(SystemExit("bye")),
    "exit": lambda: sys.exit(7),
    "quit": lambda: exit(),
    "KeyboardInterrupt": raising(KeyboardInterrupt()),
    "GeneratorExit": raising(GeneratorExit()),
    "StopIteration": raising(StopIteration()),
    "StopAsyncIteration": raising(StopAsyncIteration()),
    "CancelledError": raising(asyncio.CancelledError()),
    "MemoryError": raising(MemoryError()),
    "RecursionError": recurse,
    "BaseException": raising(BaseException()),
    "ExceptionGroup": group,
    "AssertionError": raising(AssertionError()),
    "OSError": raising(OSError(28, "No space left on device")),
    "BrokenPipeError": raising(BrokenPipeError()),
    "UnicodeError": raising(UnicodeDecodeError("utf-8", b"\\xff", 0, 1, "\\ud800")),
    "Unspeakable": raising(Unspeakable()),
    "Unspeakable2": raising(Unspeakable2()),
    "Endless": raising(Endless()),
    "Misnamed": raising(Misnamed()),
    "Chained": chained,
    "OurError": raising(SpeckitError("E040", "secret " * 1_000_000)),
    "printing": printing,
}


class Params(SignalParams):
    """None."""


class Hostile:
    """Raises what the query names."""

    about = About(features=(), needs=tuple(Scale))
    Params = Params
    combine = "add"

    def __init__(self, params):
        if os.environ.get("HOSTILE_AT") == "opening":
            raise ACTS["SystemExit"]()

    def evidence(self, query, pool, store):
        act = ACTS.get(query.text.split(" ")[0])
        if act and os.environ.get("HOSTILE_AT", "searching") == "searching":
            act()
        return np.zeros(len(pool.ids))


def register(registry):
    """The entry point."""
    if os.environ.get("HOSTILE_AT") == "registering":
        raise SystemExit(0)
    registry.add("signal", Hostile, "hostile")
'''


def install(folder: Path) -> dict[str, str]:
    """Installs the distribution into a folder; returns the environment in which it is found and runs in the server."""
    installed(folder, "hostile_signal", SIGNAL)
    fusion = "[{use: z_score, normalise: min_max}, {use: hostile}]"  # a signal adds to the unit scale alone
    (folder / "hostile.yaml").write_text(f"pipeline: hostile\nfusion: {fusion}\nrerank: []\n")
    return {
        "PYTHONPATH": str(folder),
        "SPECKIT_PIPELINE": str(folder / "hostile.yaml"),
        "SPECKIT_EXTENSIONS": "trusted",
    }
