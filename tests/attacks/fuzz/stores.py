"""Stores with damaged bytes: every operation answers or says with a code what is wrong."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from tally import Tally

from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError
from tests.attacks.fuzz.shared import folder, opened, said_with_codes, with_notes
from tests.attacks.fuzz.target import Target

CASES = st.fixed_dictionaries(
    {"bytes": st.lists(st.tuples(st.integers(0, 400_000), st.integers(0, 255)), max_size=6)},
    optional={"cut": st.integers(0, 400_000), "zeros": st.tuples(st.integers(0, 400_000), st.integers(1, 8192))},
)


@cache
def _sound() -> bytes:
    return (with_notes() / "memory.db").read_bytes()


@cache
def _place() -> Path:
    return folder()


def check(case: dict[str, Any], tally: Tally) -> None:
    """Damages a copy of a small store, then opens, searches, lists, checks and indexes."""
    data = bytearray(_sound())
    for offset, value in case["bytes"]:
        data[offset % len(data)] = value
    if "zeros" in case:
        start, length = case["zeros"]
        start %= len(data)
        data[start : start + length] = bytes(min(length, len(data) - start))
    if "cut" in case:
        del data[case["cut"] % len(data) :]
    root = _place()
    shutil.rmtree(root)
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "new.md").write_text("# New\n\nA note.\n")
    (root / "memory.db").write_bytes(data)
    for operation in (_searched, _listed, _checked, _indexed):
        try:
            with opened(root, create=False) as memory:
                operation(memory, root)
        except SpeckitError as error:
            said_with_codes(error, "E199")
        tally.survived()


def _searched(memory: Memory, _: Path) -> None:
    memory.search("why rank fusion", deadline_ms=None).as_json()


def _listed(memory: Memory, _: Path) -> None:
    memory.list()
    memory.inventory.stats()


def _checked(memory: Memory, _: Path) -> None:
    memory.status()


def _indexed(memory: Memory, root: Path) -> None:
    memory.index([root / "docs"])


TARGET = Target("stores", CASES, check, ".json", "stores")
