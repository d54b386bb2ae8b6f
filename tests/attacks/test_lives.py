"""Eight hundred lives of stores; `scripts/soak --only lives` lives as many more as there is time for."""

from __future__ import annotations

import apsw
import pytest
from tally import Tally

from tests.attacks.fuzz import lives
from tests.attacks.fuzz.run import Fuzzed, search

LIVES = 50


@pytest.mark.requirement("M1")
@pytest.mark.requirement("I8")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("number", range(16))
def test_in_whatever_order_things_happen_indexes_are_those_of_a_store_made_anew(number: int, tally: Tally) -> None:
    fuzzed = Fuzzed(lives.TARGET, tally)

    assert search(fuzzed, number, LIVES), (fuzzed.broken, fuzzed.why)


def test_every_event_is_lived_through(tally: Tally) -> None:
    """A life of each event by itself."""
    case = [("write", 0, 0), ("write", 1, 2), ("index", 0, 0), *((name, 1, 0) for name in lives.NAMED)]

    lives.check(case, tally)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM triggers",
        "DELETE FROM memory_fts",
        "UPDATE memories SET tier = 'normal', fingerprint = x'00'",  # of the same fingerprint nothing is written anew
    ],
)
def test_a_store_that_differs_from_its_files_is_noticed(
    damage: str, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(life: lives.Life, *_: int) -> None:
        connection = apsw.Connection(str(life.root / "memory.db"))
        connection.execute(damage)
        connection.close()

    monkeypatch.setitem(lives.NAMED, "segment", damaged)
    case = [("write", 1, 2), ("index", 0, 0), ("search", 0, 0), ("segment", 0, 0)]

    with pytest.raises(AssertionError):
        lives.check(case, tally)
