"""Collects which tests prove which requirement, for tests/test_requirements.py, makes generated examples repeat,
offers a store that is built once and copied, and shows what the attacks of tests/attacks tried."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import durations
import engines
import privileges
import pytest
import tiers
from replaying import ReplayHere

from tests.server.doors import indexed_workspace

CITED = pytest.StashKey[dict[str, list[str]]]()


def pytest_configure(config: pytest.Config) -> None:
    tiers.register(config)
    durations.register(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    engines.parametrize(metafunc)


@pytest.fixture(autouse=True)
def engine(request: pytest.FixtureRequest) -> str:
    """The engine of new stores: SQLite, and PostgreSQL as well for the tests of the contract."""
    name: str = getattr(request, "param", "sqlite")
    if name == "postgres":
        engines.open_in_postgres(request.getfixturevalue("monkeypatch"))
    return name


@pytest.fixture
def in_a_file() -> None:
    """For tests of the contract that observe a file or the driver of SQLite: they run over no other engine."""


@pytest.fixture
def modes_respected() -> Iterator[None]:
    """For tests of files that may not be read or written: their modes hold for root too."""
    with privileges.modes_respected():
        yield


@pytest.fixture
def processes() -> None:
    """For tests that start processes or kill them: what they ask the doors goes through the installed script."""


@pytest.fixture
def simulated() -> None:
    """For tests that draw samples until a frequency is certain."""


@pytest.fixture
def exhaustive() -> None:
    """For tests that walk every step, crash point or order of events, or a store too large for a quick answer."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    cited: dict[str, list[str]] = {}
    for item in items:
        for marker in item.iter_markers("requirement"):
            for requirement in marker.args:
                cited.setdefault(requirement, []).append(item.nodeid)
    config.stash[CITED] = cited


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What processes keep for one another lies in a folder of this run."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["XDG_RUNTIME_DIR"] = str(tmp_path_factory.mktemp("run"))


@pytest.fixture
def cited(request: pytest.FixtureRequest) -> dict[str, list[str]]:
    """Requirement id to the ids of the collected tests that prove it."""
    return request.config.stash[CITED]


@pytest.fixture(scope="session")
def unasked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose documents are indexed and that nobody has asked anything: for copies alone."""
    return indexed_workspace(tmp_path_factory.mktemp("unasked"))


@pytest.fixture(scope="session")
def indexed(unasked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose documents are indexed, for the doors. Tests must not change it; answers note uses in it."""
    return Path(shutil.copytree(unasked, tmp_path_factory.mktemp("indexed") / "workspace"))


@pytest.fixture(scope="session")
def as_made(indexed: Path) -> dict[str, object]:
    """What the shared workspace says before the first test uses it."""
    return _told(indexed)


@pytest.fixture(autouse=True)
def left_as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails the test that changes what all share, and not a later one in whatever process it lands."""
    if "indexed" not in request.fixturenames:
        yield
        return
    before = request.getfixturevalue("as_made")
    yield
    after = _told(request.getfixturevalue("indexed"))
    assert after == before, "this test changed the workspace that all tests share"


def _told(root: Path) -> dict[str, object]:
    """What documents and memories say: uses may be noted, and files made anew."""
    told: dict[str, object] = {
        str(file.relative_to(root)): file.read_bytes() for file in sorted(root.glob("docs/**/*")) if file.is_file()
    }
    # by the product's own driver: another one in this process would drop its locks
    with closing(apsw.Connection(str(root / "memory.db"), flags=apsw.SQLITE_OPEN_READONLY)) as store:
        stored = (
            "SELECT id, key, title, tier, importance_weight, validation_count, content_hash FROM memories ORDER BY id"
        )
        told["memories"] = list(store.execute(stored))
    return told


@pytest.fixture
def workspace(unasked: Path, tmp_path: Path) -> Path:
    """A copy of the indexed workspace, to be changed at will; of what other tests asked there it knows nothing."""
    return Path(shutil.copytree(unasked, tmp_path / "workspace"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """By area of tests/attacks: how many inputs were tried and how many faults survived by the tests that passed."""
    counts: dict[str, list[int]] = {}
    for report in terminalreporter.stats.get("passed", []):
        for name, value in getattr(report, "user_properties", ()):
            if name == "tally" and report.when == "call":
                area = report.nodeid.split("::")[0].removeprefix("tests/attacks/").removesuffix(".py")
                total = counts.setdefault(area.replace("test_", ""), [0, 0, 0])
                total[:] = [total[0] + 1, total[1] + value[0], total[2] + value[1]]
    if not counts:
        return
    terminalreporter.section("attacks")
    for area, (tests, inputs, faults) in sorted(counts.items()):
        terminalreporter.line(f"{area:<32} {tests:>4} tests {inputs:>8,} inputs tried {faults:>8,} faults survived")
    inputs, faults = (sum(total[place] for total in counts.values()) for place in (1, 2))
    terminalreporter.line(f"{'altogether':<32} {'':>10} {inputs:>8,} inputs tried {faults:>8,} faults survived")


@pytest.fixture(autouse=True)
def replayed_here(request: pytest.FixtureRequest) -> Iterator[None]:
    """In the fast tier kept queries are replayed in the process of the test."""
    with pytest.MonkeyPatch.context() as patched:
        if "processes" not in request.fixturenames:
            patched.setattr("speckit_memory.engine.shadowing.replay_process.ReplayProcess", ReplayHere)
        yield
