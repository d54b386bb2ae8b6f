"""One process for all extensions: when it is started, how it is confined, and how long anybody waits for it."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from isolated.distributions import installed
from isolated.opened import MEMORY_MB, hosting, isolating

from speckit_memory.pipeline.isolation import process
from speckit_memory.pipeline.isolation.extensions import IsolatedExtensions
from speckit_memory.pipeline.isolation.host import Host
from speckit_memory.pipeline.model.errors import IsolatedFailureError, NotStartedError
from speckit_memory.pipeline.process.clock import query_ns
from speckit_memory.pipeline.testing import FakeStore, Memory, ask, pool_of

pytestmark = pytest.mark.usefixtures("processes")

STORE = FakeStore(Memory(1, "one"), Memory(2, "two"))
POOL = pool_of(STORE, {1: 0.5, 2: 0.25})


@pytest.fixture(autouse=True)
def extension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(installed(tmp_path, "hostile_extension")))


@pytest.fixture
def host() -> Iterator[Host]:
    with hosting() as host:
        yield host


def signal_of(host: Host) -> Any:
    entry = isolating(host).find("hostile_signal")
    assert entry is not None
    return entry.component(entry.params.model_validate({}))


def evidence(component: Any, text: str = "fusion", **changes: Any) -> list[float]:
    column: list[float] = component.evidence(replace(ask(text), **changes), POOL, STORE).tolist()
    return column


def test_nothing_is_started_before_a_name_is_none_of_ours(host: Host) -> None:
    registry = isolating(host)
    assert registry.find("bm25") is not None
    assert host.pid is None
    assert registry.find("hostile_signal") is not None
    assert host.pid is not None
    assert "hostile_extension" not in sys.modules


def test_without_extensions_no_process_is_started_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path[1:])
    with hosting() as host:
        registry = isolating(host)
        assert registry.find("bm52") is None
        assert "bm25" in registry.names()
        assert (host.pid, registry.extensions(), registry.remark) == (None, (), "")


def test_a_process_that_keeps_ending_is_left_alone_for_a_while_and_tried_again() -> None:
    now = [0.0]
    host = Host(MEMORY_MB, clock=lambda: now[0])
    component = signal_of(host)
    for _ in range(5):
        assert evidence(component) == [1.0, 1.0]
        host.end()
    given_up = r"ended 5 times within 60 seconds and will not be restarted for another 60"
    with pytest.raises(NotStartedError, match=given_up):
        evidence(component)
    now[0] = 59.0
    with pytest.raises(NotStartedError, match=r"for another 1$"):
        evidence(component)
    now[0] = 60.0
    assert evidence(component) == [1.0, 1.0]
    host.end()


def test_who_waits_for_a_busy_process_waits_until_the_deadline_and_no_longer(host: Host) -> None:
    component = signal_of(host)
    assert host._process is not None
    with host._process.turn:
        for deadline in (query_ns() + 10**6, query_ns() - 10**12):
            with pytest.raises(IsolatedFailureError, match="busy with other searches for 500 ms") as raised:
                evidence(component, deadline_ns=deadline)
            assert raised.value.code == "E132"
    assert evidence(component) == [1.0, 1.0]


def test_a_process_that_ended_between_two_searches_is_replaced_without_a_word(host: Host) -> None:
    component = signal_of(host)
    assert evidence(component) == [1.0, 1.0]
    first = host.pid
    assert first is not None
    os.kill(first, 9)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert evidence(component) == [1.0, 1.0]
    assert host.pid != first


def facts(expression: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a Python expression says in the process of extensions."""
    source = f"import os, resource, sys\n\n\ndef register(registry):\n    raise LookupError(repr({expression}))\n"
    monkeypatch.syspath_prepend(str(installed(folder / "curious", "curious_extension", source)))
    with hosting() as host:
        extensions = IsolatedExtensions(host)
        extensions.load(())
        [failure] = [one.failure for one in extensions.extensions if one.name == "curious_extension"]
    return failure.removeprefix("LookupError: ")


def test_the_process_has_its_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expression = "(resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_AS)[0] >> 20)"
    assert facts(expression, tmp_path, monkeypatch) == f"((0, 0), {MEMORY_MB})"
    assert resource.getrlimit(resource.RLIMIT_AS)[0] >> 20 != MEMORY_MB


def test_the_process_inherits_no_descriptor_but_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        found = facts(
            "[os.path.realpath('/proc/self/fd/' + n) for n in os.listdir('/proc/self/fd')]", tmp_path, monkeypatch
        )
    assert str(tmp_path) not in found
    assert "/dev/null" in found


def test_the_process_imports_from_where_this_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoys = tmp_path / "decoys"
    decoys.mkdir()
    (decoys / "json.py").write_text("raise SystemExit('the decoy was imported')")
    monkeypatch.chdir(decoys)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "last")])
    assert (
        facts("sys.path == {expected!r}".format(expected=[str(tmp_path / "curious"), *sys.path]), tmp_path, monkeypatch)
        == "True"
    )


def test_the_environment_of_the_process_holds_no_keys_of_services(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "DATABASE_URL"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    found = process.environment()
    assert "secret" not in found.values()
    assert {"PATH", "OMP_NUM_THREADS", "LC_ALL"} <= found.keys()


def test_an_extension_whose_name_is_taken_is_refused_and_the_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: Host
) -> None:
    source = (
        "from speckit_memory.channels.bm25 import Bm25\nfrom speckit_memory.pipeline.roles.contracts import Role\n\n\n"
        "def register(registry):\n    registry.add(Role.CHANNEL, Bm25, 'more')\n    registry.add(Role.CHANNEL, Bm25)\n"
    )
    monkeypatch.syspath_prepend(str(installed(tmp_path / "other", "taking_extension", source)))
    registry = isolating(host)
    assert registry.find("more") is None
    assert registry.find("hostile_signal") is not None
    failures = {one.name: one.failure for one in registry.extensions()}
    assert failures == {
        "taking_extension": "it offers a component 'bm25', but that name is already in use", "hostile_extension": "",
    }  # fmt: skip
