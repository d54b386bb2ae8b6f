"""The background search for contradictions: the vectors of searches give the pairs that those of the file give."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from speckit_memory.engine import Memory
from speckit_memory.memory.intake import suspicions
from speckit_memory.memory.intake.prediction_error import nearest_in_file

THINGS = ("cache of answers", "queue of jobs", "table of users", "log of changes", "index of words", "pool of workers")
PLACES = ("in memory", "on disk", "in Redis", "in the cloud")


@pytest.mark.requirement("M11.scan")
def test_pairs_are_those_of_a_search_of_the_file(tmp_path: Path) -> None:
    for number, thing in enumerate(THINGS):
        for other, place in enumerate(PLACES):
            text = f"# The {thing}\n\nThe {thing} lives {place}. "
            text += f"The {thing} does not live there." if other == 3 else f"Tokens of the {thing} expire."
            (tmp_path / f"{number}-{other}.md").write_text(text)
    with Memory.open(tmp_path / "memory.db", root=tmp_path, environ={}) as memory:
        memory.index([tmp_path])
        with memory.session.opened.read_model.reading() as snapshot:
            connection = memory.session.database.reader()
            found = suspicions.compare_batch(connection, 1_800_000_000.0, snapshot.vectors.nearest_chunks)
            in_file = suspicions.compare_batch(connection, 1_800_000_000.0, partial(nearest_in_file, connection))

        assert found == in_file
        assert len(found.memories) == len(THINGS) * len(PLACES)
        assert len(found.pairs) >= len(THINGS)
