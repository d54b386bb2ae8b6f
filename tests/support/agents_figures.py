"""Eight agents on one store, measured: over each transport, against a single one, and beside a big index run."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from agents import Connect, Made, lost, over_http, over_stdio, sessions
from mcp import Client

from tests.server.doors import COMMAND, DOCUMENTS, environment
from tests.server.test_mcp_http import serving

CLIENTS = 8
CALLS = 200
"""Of all clients together."""
FILES = 5_000
TRANSPORTS = ("stdio", "http")


def prepared(root: Path) -> None:
    """Writes and indexes what the agents ask about."""
    for name, text in DOCUMENTS.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    subprocess.run([COMMAND, "index", "docs"], env=environment(root), cwd=root, check=True, stdout=subprocess.DEVNULL)


def big_folder(root: Path, files: int = FILES) -> None:
    """So many files to be indexed, each with words of its own."""
    for number in range(files):
        file = root / "big" / str(number % 50) / f"{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        words = " ".join(f"subject{number * 7 + place}" for place in range(60))
        file.write_text(f"# Page {number}\n\nAbout {words}.\n\n## More\n\nAnd nothing else.\n", encoding="utf-8")


def warmed(connected: Connect) -> Connect:
    """Clients whose server has read its store and model before the first call that counts."""

    @asynccontextmanager
    async def ready() -> AsyncIterator[Client]:
        async with connected() as client:
            await client.call_tool("memory_search", {"query": "rank fusion"})
            yield client

    return ready


@contextmanager
def connecting(transport: str, root: Path) -> Iterator[Connect]:
    """How clients come to a server: to one of their own over stdio, to one for all over HTTP."""
    if transport == "stdio":
        yield warmed(over_stdio(root))
    else:
        with serving(root) as url:
            yield warmed(over_http(url))


class Indexing:
    """An index run of the console script, beside what happens in the block."""

    def __init__(self, root: Path) -> None:
        big_folder(root)
        self._root = root
        self.seconds = 0.0
        self.outlived = False
        """Whether it still ran when the block was left."""

    def __enter__(self) -> Indexing:
        self._begun = time.perf_counter()
        self._run = subprocess.Popen(
            [COMMAND, "index", "big"], env=environment(self._root), cwd=self._root, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self.outlived = self._run.poll() is None
        assert self._run.wait(1800) == 0, "the index run failed"
        self.seconds = time.perf_counter() - self._begun


def measured(transport: str, clients: int, indexing: bool) -> tuple[Made, list[str], str]:
    """What came of all calls, what of it is lost, and a word on the index run."""
    with TemporaryDirectory(prefix="agents-") as folder:
        root = Path(folder)
        prepared(root)
        run: AbstractContextManager[Indexing | None] = Indexing(root) if indexing else nullcontext()
        with connecting(transport, root) as connected, run as beside:
            made = sessions(connected, clients, CALLS // clients, seed=1, name="c")
        found = lost(root, made)
        shutil.rmtree(root / "big", ignore_errors=True)
        if beside is None:
            return made, found, ""
        when = "longer than the calls" if beside.outlived else "and ended before the last call"
        return made, found, f"; the index run of {FILES:,} files took {beside.seconds:.0f} s, {when}"


def told(transports: Sequence[str] = TRANSPORTS) -> bool:
    """Prints all figures; False if a call failed or a write was lost."""
    held = True
    for transport in transports:
        single = 0.0
        for clients, indexing in ((1, False), (CLIENTS, False), (CLIENTS, True)):
            made, missing, beside = measured(transport, clients, indexing)
            single = single or made.p95()
            middle = sorted(made.seconds)[len(made.seconds) // 2]
            print(
                f"{transport}, {clients} clients: {len(made.seconds)} calls, {len(made.errors)} errors, "
                f"{len(missing)} lost; median {1000 * middle:.0f} ms, p95 {1000 * made.p95():.0f} ms, "
                f"{made.p95() / single:.1f} times that of one{beside}",
                flush=True,
            )
            for line in [*made.errors, *missing][:20]:
                print(f"BROKEN: {line}")
                held = False
    return held
