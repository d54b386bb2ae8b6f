"""Segments for the tests of where they lie: a builder of a few arrays, and the ways in which a file can be spoilt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import apsw
import numpy as np

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.records import Chunk, Document
from speckit_memory.memory.store.segment_files.container import FileWriter
from speckit_memory.memory.store.segment_files.segment_store import TrustedSegment, folder_of, last_change
from speckit_memory.memory.store.writing import writer


def small_build(connection: apsw.Connection, path: Path) -> TrustedSegment:
    """A segment of the ids and keys of a store alone."""
    found = rows(connection, "SELECT id, key FROM memories ORDER BY id")
    text = "\n".join(key for _, key in found).encode()
    with FileWriter(path) as file:
        file.add("ids", np.array([number for number, _ in found], np.int64))
        file.add("keys", np.frombuffer(text, np.uint8))
        file.add("zeros", np.zeros(1000, np.float32))
        sequence, token = last_change(connection)
        digest, size = file.finish({"sequence": sequence})
    return TrustedSegment(path.name, digest, size, sequence, token)


def filled(database: Database, keys: Sequence[str], word: str = "alpha") -> None:
    """Remembers a document of one passage for each key."""
    with database.write() as txn:
        for key in keys:
            chunk = Chunk(text=word, first_line=1, last_line=1, tokens=(word,))
            made = Document(key=key, title=key, body=word, content_hash=f"{key} {word}", chunks=(chunk,))
            writer.put_document(txn, made, None, 1.0, None)


def segment_of(store: Path) -> Path:
    """The one segment in the folder of a store."""
    (found,) = folder_of(store).glob("*.seg")
    return found


def flipped(path: Path, at: int) -> None:
    """One bit of the byte at this place is another; negative places count from the end."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    overwrite(path, content)


def cut(path: Path) -> None:
    """The file loses its last byte."""
    overwrite(path, path.read_bytes()[:-1])


def overwrite(path: Path, content: bytes | bytearray) -> None:
    """The file holds this. As its mode forbids that, it is changed first, which its owner would have to do."""
    path.chmod(0o600)
    path.write_bytes(content)
