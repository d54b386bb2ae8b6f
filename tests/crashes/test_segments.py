"""A writer of segments that crashes anywhere breaks nothing, and what it leaves goes."""

from __future__ import annotations

from pathlib import Path

import pytest
from crashing import every_point
from storing.segments import filled, segment_of, small_build

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.segment_files import stamp
from speckit_memory.memory.store.segment_files.container import Container
from speckit_memory.memory.store.segment_files.segment_store import FEWEST, SegmentStore, folder_of
from speckit_memory.memory.store.segment_writing import writing
from speckit_memory.memory.store.segment_writing.diagnosis import findings


@pytest.mark.usefixtures("exhaustive")
@pytest.mark.parametrize("before", [False, True])
def test_wherever_it_crashes_what_is_trusted_is_whole_and_the_rest_goes(tmp_path: Path, before: bool) -> None:
    origin, store = tmp_path / "origin", tmp_path / "root" / "store.db"
    with Database.open(origin / store.name) as database:
        filled(database, [f"notes/{number}" for number in range(FEWEST)])
        if before:
            assert writing.write(database, small_build)

    def write() -> None:
        with Database.open(store) as database:
            filled(database, ["one more"])
            writing.write(database, small_build, only_if_due=False)

    left = set()
    for crash in every_point(origin, store.parent, write):
        for file in folder_of(store).glob("*.seg"):
            container = Container.open(file)
            if (seen := stamp.look(file)) and stamp.is_stamped(file, seen, container.digest):
                container.verify()
        with Database.open(store) as database:
            assert database.check() == [], crash
            segments = SegmentStore(database)
            held, stored = segments.status(), segments.memories()
            assert held.finding is None or (held.trusted is None and not before), crash
            if held.segment is not None:
                assert len(held.segment.array("ids")) + (held.behind or 0) == stored, crash
                held.segment.verify()
            left |= {finding.kind for finding in findings(database).findings}
            assert writing.write(database, small_build, only_if_due=False), crash
            assert findings(database).findings == (), crash
            name = segment_of(store).name
            names = {file.name for file in folder_of(store).iterdir()}
            assert names == {name, f"{name}.stamp", ".gitignore"}, crash
            assert segments.usable(), crash
    assert left == ({"leftover"} if before else {"leftover", "missing"})
