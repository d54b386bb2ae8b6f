"""The fuzzer's kept inputs, and a few new ones that are the same in every run (see scripts/soak)."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from tally import Tally

from tests.attacks.fuzz.run import TARGETS, Fuzzed, fuzz, search, tried
from tests.attacks.fuzz.target import CORPUS, Target

ROOT = Path(__file__).resolve().parents[2]
ORDINARY = [target for target in TARGETS.values() if target.name != "processes"]
KEPT = [(target, file) for target in ORDINARY for file in target.kept()]


@pytest.mark.parametrize(("target", "file"), KEPT, ids=[f"{target.name}-{file.stem}" for target, file in KEPT])
def test_a_kept_input_breaks_no_promise(target: Target, file: Path, tally: Tally) -> None:
    tried(target, target.read(file.read_bytes()), tally)


def test_every_kept_input_belongs_to_a_target(tally: Tally) -> None:
    files = [file for file in CORPUS.rglob("*") if file.is_file()]

    assert sorted(files) == sorted(file for _, file in KEPT)
    tally.tried(len(files))


@pytest.mark.parametrize("target", ORDINARY, ids=lambda target: target.name)
@pytest.mark.usefixtures("exhaustive")
def test_a_round_of_new_inputs_breaks_no_promise(target: Target, tally: Tally) -> None:
    fuzzed = Fuzzed(target, tally)

    assert search(fuzzed, 1, 10), (fuzzed.broken, fuzzed.why)


@pytest.mark.usefixtures("processes")
def test_a_server_that_is_killed_between_calls_loses_nothing(tally: Tally) -> None:
    target = TARGETS["processes"]
    file = CORPUS / "tools" / "save-kill-list.json"

    tried(target, target.read(file.read_bytes()), tally)


def _met(met: list[object], case: object, tally: object) -> None:
    met.append(repr(case))


def test_the_same_seed_tries_the_same_inputs(tally: Tally) -> None:
    from dataclasses import replace

    seen: list[list[object]] = []
    for _ in range(2):
        met: list[object] = []
        target = replace(TARGETS["queries"], check=partial(_met, met))
        search(Fuzzed(target), 5, 30)
        seen.append(met)
        tally.tried(len(met))

    assert seen[0] == seen[1]
    assert len(set(map(str, seen[0]))) > 10


def test_a_finding_is_made_small_and_can_be_tried_again(tally: Tally, tmp_path: Path) -> None:
    from dataclasses import replace

    def check(data: bytes, tally: Tally) -> None:
        tally.tried()
        assert b"title" not in data

    target = replace(TARGETS["documents"], check=check)
    fuzzed = Fuzzed(target, tally)
    numbers = iter(range(100))
    while search(fuzzed, next(numbers), 40):
        pass

    assert b"title" in fuzzed.broken
    assert len(fuzzed.broken) < 400
    assert "AssertionError" in fuzzed.why
    assert target.read(target.write(fuzzed.broken)) == fuzzed.broken


@pytest.mark.usefixtures("processes")
def test_soak_says_the_seed_the_counts_and_replays(tally: Tally) -> None:
    def soak(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "scripts/soak", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)

    done = soak("--minutes", "0", "--seed", "3", "--only", "settings")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("seed 3\nsettings")
    assert "held" in done.stdout
    kept = next(file for target, file in KEPT if target.name == "settings")
    assert soak("--only", "settings", "--replay", str(kept)).stdout == "held\n"
    assert soak("--replay", str(kept)).returncode == 2
    tally.tried(2)


def test_every_target_has_its_turn(tally: Tally) -> None:
    names = ["settings", "queries"]

    finished = list(fuzz(names, 2, 0.0))

    assert [fuzzed.target.name for fuzzed in finished] == names
    assert all(fuzzed.rounds == 1 and not fuzzed.why for fuzzed in finished)
    tally.tried(len(names))
