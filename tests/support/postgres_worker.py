"""A process that saves numbered memories in a store until its input ends, and prints what came of each.

`saved N` was acknowledged, `refused N` was said not to be written, and `unknown N` could not be found out. `wrong N`
means that the store does not hold what was said.
"""

from __future__ import annotations

import itertools
import sys
import threading
from pathlib import Path

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.failures import LostConnectionError
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import Chunk, Document
from speckit_memory.memory.store.writing import writer


def held(database: Database, key: str) -> bool:
    """Whether the store holds a memory; a lost connection is tried again."""
    while True:
        try:
            with database.snapshot_read() as connection:
                return key in reader.known_files(connection, key)
        except SpeckitError as error:
            print("again", error.code, flush=True)


def save(database: Database, key: str, number: int) -> str:
    """Saves a memory, and returns what its caller is told."""
    document = Document(key, "t", "b", key, chunks=(Chunk(f"text {number}", tokens=("word", f"v{number}")),))
    try:
        with database.write() as txn:
            writer.put_document(txn, document, None, float(number), "")
    except SpeckitError as error:
        told = not isinstance(error, LostConnectionError) or error.problems[0].retryable
        return "refused" if told else "unknown"
    return "saved"


def main() -> None:
    name = sys.argv[2]
    ended = threading.Event()

    def end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=end, daemon=True).start()
    with Database.open(Path(sys.argv[1])) as database:
        numbers = itertools.count()
        number = next(numbers)
        while not ended.is_set():
            key = f"{name}/{number}"
            outcome = save(database, key, number)
            print(outcome, number, flush=True)
            if outcome != "unknown" and held(database, key) != (outcome == "saved"):
                print("wrong", number, flush=True)
            if outcome != "refused":
                number = next(numbers)


if __name__ == "__main__":
    main()
