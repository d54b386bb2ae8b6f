"""The two tiers of the suite, and what tells them apart: a fixture, never a list of tests.

A test that requests one of `PROOF_FIXTURES` is *proof* (`pytest -m proof`); every other test is *fast* (what `pytest`
runs). A fast test that starts a process fails, whoever starts it. Property tests belong to both: 25 examples each in
the fast tier, 300 in the proof.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings

PROOF_FIXTURES = frozenset({"processes", "simulated", "exhaustive"})
IN_MEMORY, NEEDED_BYTES = Path("/dev/shm"), 4 << 30
"""Where stores of tests lie if so much is free there: making and deleting their files takes half the time on a disk."""
SPAWNING = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "os.exec"}
)
"""Audit events of the interpreter that tell of a new process."""
PROFILES = {"fast": 25, "proof": 300, "soak": 2000}
"""Examples of a property test. `HYPOTHESIS_PROFILE` chooses one; else the tier does."""

for _name, _examples in PROFILES.items():
    # The same examples in every run: a change is judged by what it changed. Only the soak looks for new ones, and
    # keeps what it finds in the shared database `.hypothesis`.
    settings.register_profile(_name, derandomize=_name != "soak", deadline=None, max_examples=_examples)

_permitted = True
_spawned: list[str] = []


def may_spawn() -> bool:
    """Whether the running test has the fixture `processes`; True outside of the suite."""
    return _permitted


@contextmanager
def shared_server() -> Iterator[None]:
    """Permits the start of a server that serves the whole run, whichever test happens to be the first to need it."""
    global _permitted  # noqa: PLW0603 -- the audit hook, which cannot be taken away, reads it
    before, _permitted = _permitted, True
    try:
        yield
    finally:
        _permitted = before


def require_processes(what: str) -> None:
    """Raises unless the running test may start a process. `what` says what would have been started."""
    if not _permitted:
        _spawned.append(what)
        raise RuntimeError(f"{what}: a test of the fast tier starts no process")


def examples(share: float) -> int:
    """A share of the profile's examples, for a property whose single example is dear (share < 1) or cheap (> 1)."""
    return max(2, round(settings().max_examples * share))


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if event in SPAWNING and not _permitted:
        require_processes(f"{event} {arguments[0] if arguments else ''}".strip())


class Tiers:
    """The pytest plugin that sorts tests into tiers and guards the fast one."""

    def pytest_collection_finish(self) -> None:
        """Spares the garbage collector the thousands of collected tests: an eighth of the processor time."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Marks the tests of the proof tier; where that is what runs, property tests too."""
        proving = config.option.markexpr == "proof"
        for item in items:
            property_test = is_hypothesis_test(getattr(item, "obj", None))
            if PROOF_FIXTURES & set(getattr(item, "fixturenames", ())) or (proving and property_test):
                item.add_marker("proof")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Permits processes to the tests that ask for them; the next test begins in the folder of the run."""
        global _permitted  # noqa: PLW0603 -- the audit hook, which cannot be taken away, reads it
        _permitted = "processes" in getattr(item, "fixturenames", ())
        try:
            return (yield)
        finally:
            _permitted = True
            os.chdir(item.config.invocation_params.dir)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Fails a test that started a process without the fixture, even where the product survived the refusal."""
        _spawned.clear()
        result = yield
        if _spawned:
            pytest.fail(f"{item.name} starts processes ({', '.join(_spawned)}): request the fixture `processes`")
        return result


def register(config: pytest.Config) -> None:
    """Adds the plugin and begins to watch for processes."""
    if IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free >= NEEDED_BYTES and os.access(IN_MEMORY, os.W_OK):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))
    # before modules of tests are imported: their decorators take what they leave open from the profile in force
    tier = "proof" if config.option.markexpr == "proof" else "fast"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", tier))
    sys.addaudithook(_watch)
    config.pluginmanager.register(Tiers(), "tiers")
