"""Lives of 126 stores; `scripts/soak --only lives` lives as many more as there is time for."""

from __future__ import annotations

from contextlib import closing

import apsw
import pytest
from tally import Tally

from speckit_memory.memory.store.file.opening import vector_extension
from tests.attacks.fuzz import lives, living
from tests.attacks.fuzz.living import Life
from tests.attacks.fuzz.run import Fuzzed, search

LIVES = 126


@pytest.mark.requirement("M1", "I8")
@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("simulated")
def test_in_whatever_order_things_happen_indexes_are_those_of_a_store_made_anew(tally: Tally) -> None:
    fuzzed = Fuzzed(lives.TARGET, tally)

    assert search(fuzzed, 0, LIVES), (fuzzed.broken, fuzzed.why)


def test_every_event_is_lived_through(tally: Tally) -> None:
    """A life of each event by itself, and of a death in the midst of each that is one of many steps."""
    lives.check([(name, 1, 0) for name in lives.NAMED], tally)
    lives.check([("kill", number, 4) for number in range(len(living.KILLED))], tally)


DAMAGES = {
    "write": "DELETE FROM triggers WHERE source = 'authored'",
    "index": "DELETE FROM memory_fts WHERE rowid = (SELECT min(id) FROM memories)",
    "save": "UPDATE memories SET tier = 'important' WHERE key = 'docs/fusion.md'",
    "update": "UPDATE texts SET title_tokens = 'another' WHERE memory_id = 1",
    "restore": "DELETE FROM declared_links",
    "undelete": "DELETE FROM causal_edges",
    "delete": "UPDATE chunks SET heading = 'another' WHERE id = (SELECT max(id) FROM chunks)",
    "learn": "UPDATE triggers SET normalised = 'backup' WHERE source = 'learned'",
    "unlink": "DELETE FROM causal_edges WHERE created_by = 'document'",
    "undo": "UPDATE causal_edges SET relation = 'caused' WHERE created_by = 'document'",
    "model": "UPDATE chunk_vectors SET embedding = (SELECT embedding FROM chunk_vectors WHERE rowid = "
    "(SELECT max(rowid) FROM chunk_vectors)) WHERE rowid = (SELECT min(rowid) FROM chunk_vectors)",
    "roll_back": "DELETE FROM chunk_vectors WHERE rowid = (SELECT min(rowid) FROM chunk_vectors)",
    "checkpoint": "UPDATE memories SET content_hash = 'another' WHERE id = (SELECT min(id) FROM memories)",
    "kill": "UPDATE chunks SET text = text || ' more'",
}
BEFORE = {
    "restore": ("checkpoint", 1, 1), "undelete": ("delete", 0, 1), "undo": ("link", 0, 1), "roll_back": ("model", 1, 0),
    "unlink": ("link", 2, 0),
}  # fmt: skip


@pytest.mark.parametrize("event", DAMAGES)
def test_what_an_event_does_wrong_is_noticed(event: str, tally: Tally, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event does what it does, and then something that it should not: nobody is told of it."""
    whole, done = lives.NAMED[event], list[bool]()

    def damaging(life: Life, first: int, second: int) -> None:
        whole(life, first, second)
        lives.NAMED["search"](life, 0, 1)  # what is wrong later is not what this process has read
        with closing(apsw.Connection(str(life.root / "memory.db"))) as connection:
            connection.enable_load_extension(True)
            connection.load_extension(vector_extension())
            before = connection.total_changes()
            connection.execute(DAMAGES[event])
            done.append(connection.total_changes() > before)

    monkeypatch.setitem(lives.NAMED, event, damaging)
    case = [("search", 0, 0), *([BEFORE[event]] if event in BEFORE else []), (event, 2 if event == "unlink" else 1, 1)]

    with pytest.raises(AssertionError):
        lives.check(case, tally)
    assert done == [True]
