"""What it costs to tell files that a scan missed from files that are gone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.config.workspace.options import SourcePatterns
from speckit_memory.memory.scanning.ignore_files import IgnoreFiles
from speckit_memory.memory.scanning.reappeared_files import ReappearedFiles
from speckit_memory.memory.scanning.scanner import Scan, decide
from speckit_memory.memory.scanning.selection import FileSelection
from speckit_memory.memory.store.reading.reader import KnownFile

Write = Callable[[str, str], Path]
Known = dict[str, KnownFile]


def files(write: Write, count: int) -> Known:
    keys = [f"docs/part-{number % 3}/n{number:03}.md" for number in range(count)]
    for key in keys:
        write(key, "text")
    return {key: KnownFile(number, 1, "hash", "done") for number, key in enumerate(keys)}


def calls_of(work: Callable[[], Any]) -> int:
    """How many functions are called: a time that does not depend on the machine."""
    count = 0

    def note(_frame: object, event: str, _value: object) -> None:
        nonlocal count
        count += event.endswith("call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def looked(root: Path, known: Known) -> Scan:
    """As an index run does it with a scan that found none of the files."""
    found = Scan(covered=[""])
    returned = ReappearedFiles(found, root, SourcePatterns(), ())
    found.hidden += returned.among(decide(found, known).gone)
    assert returned.among(decide(found, known).gone) == []
    return found


@pytest.mark.requirement("I8.watched")
@pytest.mark.parametrize("ignored", ["", "*.md\n"], ids=["back", "newly left out"])
def test_four_times_the_files_are_no_more_than_some_four_times_the_work(root: Path, write: Write, ignored: str) -> None:
    write(".speckitignore", ignored)
    few, many = files(write, 50), files(write, 200)
    looked(root, few)  # what is compiled and cached once

    work = [calls_of(lambda known=known: looked(root, known)) for known in (few, many)]  # type: ignore[misc]

    assert sorted(looked(root, many).hidden) == ([] if ignored else sorted(many))
    assert work[1] < 6 * work[0]


@pytest.mark.requirement("I8.watched")
def test_ignore_files_are_read_once_a_folder_and_a_file_is_judged_once(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = files(write, 30)
    write("docs/.gitignore", "n00*.md\n")
    entered: list[Path] = []
    judged: list[Path] = []

    def inside(self: IgnoreFiles, folder: Path, *values: Any, real: Any = IgnoreFiles.inside) -> Any:
        entered.append(folder)
        return real(self, folder, *values)

    def leaves_out(self: FileSelection, path: Path, *values: Any, real: Any = FileSelection.leaves_out) -> Any:
        judged.append(path)
        return real(self, path, *values)

    monkeypatch.setattr(IgnoreFiles, "inside", inside)
    monkeypatch.setattr(FileSelection, "leaves_out", leaves_out)

    assert sorted(looked(root, known).hidden) == sorted(key for key in known if "/n00" not in key)

    folders = [root / "docs", *(root / "docs" / f"part-{number}" for number in range(3))]
    assert [folder for folder in entered if folder.is_relative_to(root)] == [root, *folders]
    assert sorted(judged) == sorted([*folders, *(root / key for key in known)])
