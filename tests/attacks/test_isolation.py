"""Whatever an isolated component does, the search answers as it would without it and says which step was lost."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from isolated.distributions import installed
from isolated.opened import hosting, isolating, opened
from tally import Tally

from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.isolation.host import Host
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.roles.registry import Registry
from speckit_memory.pipeline.running import runner
from tests.attacks.isolated import PLAIN, STEPS, lost, served, workspace

pytestmark = pytest.mark.usefixtures("processes")

QUESTION = "why are ranks fused"
KILLS = {
    "exit": "its process ended with status 7",
    "crash": "its process was ended by the signal SIGSEGV",
    "close": "its process lost the connection and ended",
    "garble": "its message is not an answer; its process was ended",
    "oversize": "its message is longer than 72 MB; its process was ended",
}
"""What ends the process, and how the answer says so."""
SURVIVED = {"quit": "SystemExit: 3", "allocate": "MemoryError"}
"""What fails the step and leaves the process to others."""
HARMLESS = ("chatter", "multiply", "rewrite", "hunt")
"""What an isolated component may do as it likes: nobody else notices."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return workspace(tmp_path_factory.mktemp("isolated"))


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The hostile extension is installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(installed(tmp_path_factory.mktemp("path"), "hostile_extension")))
        yield
    assert "hostile_extension" not in sys.modules, "the extension came into this process"


@pytest.fixture(scope="module")
def host(extension: None) -> Iterator[Host]:
    with hosting() as host:
        yield host


@pytest.fixture(scope="module")
def registry(host: Host) -> Registry:
    return isolating(host)


@pytest.fixture(scope="module")
def hostile(root: Path, registry: Registry) -> Iterator[Memory]:
    """The workspace searched through the hostile pipeline, whose components are in another process."""
    with opened(root, root / "hostile.yaml", registry) as memory:
        yield memory


@pytest.fixture(scope="module")
def plain(root: Path, registry: Registry) -> Iterator[Memory]:
    """The same without the hostile steps."""
    with opened(root, root / "plain.yaml", registry) as memory:
        yield memory


def agree(hostile: Memory, plain: Memory, question: str) -> dict[str, str]:
    """Asserts that both serve the same; the steps that the hostile pipeline lost."""
    answer, expected = (memory.search(question, limit=5).as_json() for memory in (hostile, plain))
    assert served(answer) == served(expected)
    assert answer["results"], "an empty answer proves nothing"
    assert not lost(expected)
    return lost(answer)


def test_honest_steps_change_nothing(hostile: Memory, plain: Memory, tally: Tally) -> None:
    assert agree(hostile, plain, QUESTION) == {}
    tally.tried()


@pytest.mark.parametrize(("role", "deed"), [*product(STEPS, ["exit"]), *product(["channel", "signal"], [*KILLS][1:])])
@pytest.mark.requirement("P9")
def test_a_process_that_ends_costs_its_step_alone(
    hostile: Memory, plain: Memory, role: str, deed: str, tally: Tally
) -> None:
    assert agree(hostile, plain, f"{QUESTION} zz-{role}-{deed}") == {f"hostile_{role}": KILLS[deed]}
    assert agree(hostile, plain, QUESTION) == {}, "the next search has the step again"
    tally.survived()


@pytest.mark.parametrize(("role", "deed"), [*product(STEPS, ["quit"]), ("channel", "allocate"), ("signal", "allocate")])
def test_what_fails_in_the_process_leaves_it_to_others(
    hostile: Memory, plain: Memory, host: Host, role: str, deed: str, tally: Tally
) -> None:
    assert agree(hostile, plain, QUESTION) == {}
    before = host.pid
    assert agree(hostile, plain, f"{QUESTION} zz-{role}-{deed}") == {f"hostile_{role}": SURVIVED[deed]}
    assert host.pid == before
    tally.survived()


def in_this_process() -> tuple[object, ...]:
    """What the deed "rewrite" puts other things in the place of."""
    return sys.modules["speckit_memory.pipeline.guards.checks"], runner.Runner.run, vars(Ranking)["__len__"]


@pytest.mark.parametrize("deed", HARMLESS)
@pytest.mark.parametrize("role", ["signal", "annotator"])
def test_what_a_component_does_in_its_own_process_reaches_nobody(
    hostile: Memory, plain: Memory, host: Host, role: str, deed: str, tally: Tally
) -> None:
    before = in_this_process()
    first = agree(hostile, plain, f"{QUESTION} zz-{role}-{deed}")
    assert set(first) <= {f"hostile_{name}" for name in STEPS}, "only steps of its own process may suffer"
    assert in_this_process() == before
    assert np.isfinite(1.0)
    assert agree(hostile, plain, QUESTION).keys() <= {f"hostile_{name}" for name in STEPS}
    host.end()  # what it rewrote goes with it
    assert agree(hostile, plain, QUESTION) == {}
    tally.survived()


@pytest.mark.requirement("P9")
@pytest.mark.parametrize("role", ["channel", "annotator"])
def test_a_loop_ends_with_the_deadline(hostile: Memory, plain: Memory, host: Host, role: str, tally: Tally) -> None:
    question = f"{QUESTION} zz-{role}-loop"
    answer = hostile.search(question, limit=5, deadline_ms=600).as_json()
    assert lost(answer)[f"hostile_{role}"].startswith("it did not answer within ")
    assert served(answer) == served(plain.search(question, limit=5).as_json())
    assert host.pid is None or role == "channel"
    assert agree(hostile, plain, QUESTION) == {}
    tally.survived()


@pytest.mark.parametrize("role", ["signal", "annotator"])
def test_an_answer_without_measure_is_not_taken(hostile: Memory, plain: Memory, role: str, tally: Tally) -> None:
    reason = agree(hostile, plain, f"{QUESTION} zz-{role}-bulk")[f"hostile_{role}"]
    assert reason == "its answer is longer than 72 MB"
    tally.tried()


def test_a_recoverer_that_exits_leaves_the_others_to_recover(root: Path, registry: Registry, tally: Tally) -> None:
    file = root / "recovering.yaml"
    file.write_text(f"{PLAIN[:-2]}, channels: [bm25], recover: [hostile_recoverer, fallback]}}\n", encoding="utf-8")
    with opened(root, file, registry) as memory:
        trace = memory.search("xylophone zz-recoverer-exit").outcome.trace
    assert [(part.part, part.reason) for part in trace.degraded] == [("hostile_recoverer", KILLS["exit"])]
    assert [record.state for record in trace.steps if record.step == "fallback"][:1] == ["ran"]
    tally.survived()


@pytest.mark.parametrize("step", ["fuser", "signal"])
def test_a_step_that_is_required_is_named_by_the_error(root: Path, registry: Registry, step: str, tally: Tally) -> None:
    file = root / f"required_{step}.yaml"
    fusion = {"fuser": "[hostile_fuser]", "signal": "[{use: z_score, normalise: min_max}, hostile_signal]"}
    text = PLAIN.replace("[{use: z_score, normalise: min_max}]", fusion[step])
    file.write_text(text, encoding="utf-8")
    with opened(root, file, registry) as memory:
        assert memory.search(QUESTION).results
        with pytest.raises(SpeckitError) as raised:
            memory.search(f"{QUESTION} zz-{step}-exit")
        assert str(raised.value) == f"E040 the step 'hostile_{step}' failed: its process ended with status 7"
        assert memory.search(QUESTION).results
    tally.survived()


def test_what_an_extension_forked_ends_with_its_process(
    root: Path, host: Host, registry: Registry, plain: Memory, tmp_path: Path, tally: Tally
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    file = root / "forking.yaml"
    file.write_text(f"extends: hostile.yaml\nannotate: [attribution, {{use: hostile_annotator, pipe: {pipe}}}]\n")
    try:
        with opened(root, file, registry) as memory:
            agree(memory, plain, f"{QUESTION} zz-annotator-multiply")
            assert not select.select([reader], [], [], 0)[0], "they live"
            host.end()
            ready, _, _ = select.select([reader], [], [], 30)
            assert ready
            assert os.read(reader, 1) == b"", "nobody holds the pipe any more"
    finally:
        os.close(reader)
    tally.survived(3)
