"""Inverted indexes in memory, as a process comes to have them that asks for many words."""

from __future__ import annotations

from speckit_memory.memory.store.read_model.snapshot import Snapshot


def index_in_memory(snapshot: Snapshot) -> None:
    """Has the indexes of this state built, and waits for them."""
    lexicon = snapshot.lexicon
    lexicon._beside.start(lexicon._build)
    lexicon._beside.wait()
    assert not lexicon.from_file
