"""Damaged stores: whatever is wrong with the file, every door answers, or says with a code what is wrong."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from files import write_file
from storing.damages import SHADOWS, STATEMENTS, damages
from tally import Tally

from tests.server.doors import DOCUMENTS, call

REPOSITORY = Path(__file__).parents[2]
WORKER = REPOSITORY / "tests" / "support" / "storing" / "door_worker.py"
PARTS = 6
EVERY = 8
"""Of the damages that differ only in their seed, place, column or value, every so many is tried by these tests."""
CODES = {f"E{number:03}" for number in (1, 2, 3, 10, 14, 20, 21, 22, 23, 24, 25, 26, 40, 80, 81, 82, 92)}
ANSWERS = {"ok", "not well", "status 0", "status 1"}


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("healthy")
    for name, text in {**DOCUMENTS, "new.md": "# New\n\nA new note about the yak.\n"}.items():
        write_file(root / name, text)
    assert call(root, ["index", "docs"]).status == 0
    return root


def asked(lines: list[str]) -> list[tuple[str, str, str]]:
    """(damage, question, outcome) of everything that a process was asked; it must live to the end."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPECKIT_")}
    ran = subprocess.run(
        [sys.executable, WORKER],
        input="".join(lines),
        capture_output=True,
        text=True,
        check=False,
        env={**kept, "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{REPOSITORY / 'tests' / 'support'}"},
        timeout=300,
    )
    told = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith('["')]
    assert ran.returncode == 0, (told[-1:], ran.stderr[-2000:])
    return [(damage, question, outcome) for damage, question, outcome in told if outcome is not None]


def chosen() -> list[str]:
    names = list(damages())
    each = {*STATEMENTS, *(f"dropped_{table}" for table in SHADOWS)}
    return [name for name in names if name in each] + [name for name in names if name not in each][::EVERY]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.usefixtures("processes")
def test_every_door_answers_on_a_damaged_store_or_says_with_a_code_what_is_wrong(
    healthy: Path, tmp_path: Path, part: int, tally: Tally
) -> None:
    lines = []
    for number, name in enumerate(chosen()[part::PARTS]):
        root = Path(shutil.copytree(healthy, tmp_path / str(number)))
        damages()[name](root / "memory.db")
        lines.append(f"{name}\t{root}\t{number % 3}\n")
    outcomes = asked(lines)
    assert {damage for damage, _, _ in outcomes} == {line.partition("\t")[0] for line in lines}
    wrong = [row for row in outcomes if row[2] not in CODES | ANSWERS]
    assert wrong == []
    tally.tried(len(outcomes))
    tally.survived(len(lines))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("no_sequence", "the sequence of ids is missing"),
        ("changes_huge", "the log of changes has impossible numbers"),
        ("vectors_nan", "is not a unit vector"),
        ("vectors_short", "the vectors cannot be checked"),
        ("no_meta", "which model made its vectors"),
        ("dropped_texts", "texts"),
        ("dropped_changes", "changes"),
        ("dropped_memory_fts", "memory_fts"),
        ("texts.rest_invalid_utf8", "is not UTF-8 text"),
        ("fts_data_random", "memory_fts"),
        ("surface_data_random", "surface_fts"),
        ("surface_structure_huge", "surface_fts"),
        ("zeroed_pages_3", ""),
        ("cut_at_0.5", ""),
    ],
)
def test_doctor_says_what_is_damaged_and_what_to_do(
    healthy: Path, tmp_path: Path, damage: str, said: str, tally: Tally
) -> None:
    root = Path(shutil.copytree(healthy, tmp_path / "workspace"))
    damages()[damage](root / "memory.db")
    before = (root / "memory.db").read_bytes()
    ran = call(root, ["doctor", "--json"]).ended(1)
    (store,) = [check for check in ran.json["checks"] if check["name"] == "store"]
    assert store["verdict"] == "fail"
    assert said in store["detail"]
    assert "index again" in store["hint"]
    assert (root / "memory.db").read_bytes() == before
    tally.tried()


def test_a_store_that_is_indexed_again_after_the_advice_of_doctor_is_healthy(
    healthy: Path, tmp_path: Path, tally: Tally
) -> None:
    root = Path(shutil.copytree(healthy, tmp_path / "workspace"))
    damages()["zeroed_pages_3"](root / "memory.db")
    assert call(root, ["doctor"]).status == 1
    (root / "memory.db").rename(root / "damaged.db")
    assert call(root, ["index", "docs"]).status == 0
    assert call(root, ["doctor"]).status == 0
    tally.survived()
