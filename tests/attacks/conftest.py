"""What every attack shares: it counts what it tried and what it had to survive; one that counts nothing fails."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from raw_server import RawServer, raw_server
from tally import Tally

TALLY = pytest.StashKey[Tally]()
FAILED = pytest.StashKey[bool]()


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Iterator[Tally]:
    """The counts of this test, shown by area at the end of the run."""
    tally = request.node.stash[TALLY] = Tally()
    yield tally
    assert tally.inputs or tally.faults or request.node.stash[FAILED], "the attack counted nothing"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Adds the counts to the report as plain numbers, which travel between the processes of a run."""
    if call.when == "call" and TALLY in item.stash:
        item.stash[FAILED] = call.excinfo is not None
        tally = item.stash[TALLY]
        item.user_properties.append(("tally", (tally.inputs, tally.faults)))
    return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every attack counts: one that cannot is refused before anything runs."""
    for item in items:
        if "tests/attacks/" in item.nodeid and "tally" not in getattr(item, "fixturenames", ()):
            raise pytest.UsageError(f"{item.nodeid}: an attack takes the fixture `tally` and counts what it tries")


@pytest.fixture(scope="module")
def server(unasked: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawServer]:
    """One server over stdio, with a workspace of its own, for all tests of a module: each must leave it as it was."""
    root = Path(shutil.copytree(unasked, tmp_path_factory.mktemp("attacked") / "workspace"))
    with raw_server(root, "--no-warm-up") as running:
        running.start()
        yield running
        assert running.close() == 0
