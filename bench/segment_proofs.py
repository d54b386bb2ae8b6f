"""Writers of segments that are killed, and writers beside readers, over a store of some size.

`python -m bench.segment_proofs FOLDER --memories 5000` writes a seeded store and, over it,

- kills a process that saves a memory and writes the segment, at a random moment of that, and compares what the store
  then answers with what a copy of it without segments answers, until `--kills` killed a process at work;
- has two processes save and write segments for `--seconds`, while four compare everything they read of a state with
  what the tables of that very state say.

It ends with 1 when an answer differs, a store is damaged, or `doctor` does not end with 0. POSIX only.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench.one_thread import one_thread
from bench.synthetic import Corpus, build
from speckit_memory.engine import Memory
from speckit_memory.memory.indexing import Source
from speckit_memory.memory.store.segment_files.segment_store import folder_of

NOW = 1_800_000_000.0
QUESTIONS = 6
COMMAND = Path(sys.executable).parent / "speckit-memory"
ROOT = Path(__file__).parent.parent


def opened(store: Path) -> Memory:
    """The default pipeline over a store; nothing runs beside it."""
    return Memory.open(store, "default", root=store.parent, environ={}, shadows=False)


def writing(store: Path, name: str, seconds: float) -> int:
    """Saves a memory and writes the segment, again and again. Returns how often."""
    until, turn = time.monotonic() + seconds, 0
    with opened(store) as memory:
        while time.monotonic() < until:
            text = f"Note {turn} of {name} about rivers and herons."
            memory.index_documents((Source(key=f"{name}/{turn}", text=text),))
            print("begun", flush=True)
            memory.lifecycle.write_segment()
            turn += 1
    return turn


def reading(store: Path, seed: int, seconds: float) -> Counter[str]:
    """Compares what is read of states with what their tables say. Returns how often, by where it came from."""
    from bench.states import differences

    until, draw, seen = time.monotonic() + seconds, random.Random(seed), Counter[str]()
    with opened(store) as memory:
        while time.monotonic() < until:
            found, different = differences(memory, draw)
            seen[found] += 1
            if different:
                raise SystemExit(f"another answer than the tables give: {', '.join(different)}")
    return seen


def answers(store: Path, questions: list[str]) -> list[Any]:
    """Rows of some questions, with their scores to the last bit."""
    with opened(store) as memory:
        return [
            [(row.key, row.score, row.snippet) for row in memory.search(text, now=NOW, limit=20).results]
            for text in questions
        ]


def bare_copy(store: Path, folder: Path) -> Path:
    """The latest state of a store in another folder, without segments."""
    folder.mkdir(exist_ok=True)
    copy = folder / store.name
    for file in folder.glob(store.name + "*"):
        file.unlink()
    with sqlite3.connect(store) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    source.close()
    target.close()
    return copy


def doctor(store: Path) -> tuple[int, list[str]]:
    """The exit status of `doctor`, and what it finds about the segment, by kind."""
    environment = {**os.environ, "SPECKIT_DB": str(store), "SPECKIT_ROOT": str(store.parent)}
    ran = subprocess.run([COMMAND, "doctor", "--json"], env=environment, capture_output=True, text=True, check=False)
    detail = next(check["detail"] for check in json.loads(ran.stdout)["checks"] if check["name"] == "segment")
    kinds = [part.split(":")[0].removeprefix("E028 ").removeprefix("E029 ") for part in detail.split("; ")[1:]]
    return ran.returncode, kinds or ["whole"]


def role(store: Path, name: str, seed: int, seconds: float) -> subprocess.Popen[str]:
    """A process that writes or reads."""
    arguments = [sys.executable, "-m", "bench.segment_proofs", str(store.parent), "--role", name]
    arguments += ["--seed", str(seed), "--seconds", str(seconds)]
    return subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def killed(store: Path, corpus: Corpus, kills: int, seed: int) -> bool:
    """Kills so many writers. True when every answer after them was that of the tables."""
    draw, right, told, files = random.Random(seed), True, Counter[str](), Counter[str]()
    begun = time.monotonic()
    with opened(store) as memory:
        memory.lifecycle.write_segment()
    whole = 1.2 * (time.monotonic() - begun)  # some are killed shortly after the end
    for attempt in range(kills):
        with role(store, f"killed {attempt} {seed}", seed, 600) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(draw.uniform(0, whole))
            os.kill(writer.pid, signal.SIGKILL)
        questions = [f"heron {attempt}", *corpus.queries("moderate", QUESTIONS - 1)]
        files[f"{sum(1 for _ in folder_of(store).glob('.*.seg.*'))} unfinished"] += 1
        status, kinds = doctor(store)
        told.update(kinds)
        if answers(store, questions) != answers(bare_copy(store, store.parent / "bare"), questions):
            right = False
            print(f"kill {attempt}: other answers than without a segment")
        if status:
            right = False
            print(f"kill {attempt}: doctor ended with {status}")
    print(f"{kills} kills, answers of {QUESTIONS} questions each {'equal' if right else 'DIFFERENT'}")
    print(f"doctor named: {dict(told)}; files left: {dict(files)}")
    with opened(store) as memory:
        memory.lifecycle.write_segment()
        damage = memory.lifecycle.check()
    left = sorted(file.name for file in folder_of(store).glob("*.seg*"))
    print(f"after one more writer: {doctor(store)[1]}, {len(left)} files (segment and stamp), damage: {list(damage)}")
    return right and not damage and len(left) == 2


def beside(store: Path, seconds: float, seed: int) -> bool:
    """Two writers and four readers. True when all that was read was right."""
    roles = [(f"writer {number} {seed}", number) for number in range(2)] + [("reader", number) for number in range(4)]
    processes = [role(store, name, seed + number, seconds) for name, number in roles]
    ended = [process.communicate() for process in processes]
    for (name, _), (said, wrong) in zip(roles, ended, strict=True):
        print(f"{name}: {said.splitlines()[-1] if said else ''} {wrong.strip()[-300:]}")
    return all(process.returncode == 0 for process in processes)


def main() -> int:
    """Makes the store unless it is there, and tries both."""
    parser = argparse.ArgumentParser(prog="python -m bench.segment_proofs", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, help="where memory.db is, or is written")
    parser.add_argument("--memories", type=int, default=5_000, help="of a new store (default: %(default)s)")
    parser.add_argument("--kills", type=int, default=50, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=60.0, help="of writers beside readers (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="chooses the moments (default: %(default)s)")
    parser.add_argument("--role", default="", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    one_thread()
    store = chosen.folder.resolve() / "memory.db"
    if chosen.role == "reader":
        print(dict(reading(store, chosen.seed, chosen.seconds)))
        return 0
    if chosen.role:
        print(f"{writing(store, chosen.role, chosen.seconds)} segments asked for")
        return 0
    if not store.exists():
        store.parent.mkdir(parents=True, exist_ok=True)
        build(store.parent, chosen.memories)
    right = killed(store, Corpus(chosen.memories), chosen.kills, chosen.seed) if chosen.kills else True
    return 0 if (not chosen.seconds or beside(store, chosen.seconds, chosen.seed)) and right else 1


if __name__ == "__main__":
    sys.exit(main())
