from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from speckit_memory.memory.store.file import file_system
from speckit_memory.memory.store.segment_files import mapping
from speckit_memory.memory.store.segment_files.container import Container, FileWriter, TornError

COUNT = 100_000
"""Numbers of the file: some hundred pages."""

needs_leases = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="leases are Linux's")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A segment of numbers."""
    path = tmp_path / "a.seg"
    with FileWriter(path) as writer:
        writer.add("numbers", np.arange(COUNT))
        writer.finish({"sequence": 1})
    return path


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def zeroed(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(bytes(path.stat().st_size))


def cut(path: Path) -> None:
    os.truncate(path, 100)


def copied_over(path: Path) -> None:
    """As `cp` does: into the same file, which is empty meanwhile."""
    backup = path.with_name("backup")
    shutil.copyfile(path, backup)
    shutil.copyfile(backup, path)


HARMS: tuple[Callable[[Path], None], ...] = (emptied, zeroed, cut, copied_over)


def harmed(path: Path, harm: Callable[[Path], None]) -> None:
    path.chmod(0o600)  # which its owner would have to do first
    harm(path)


def unleased(monkeypatch: pytest.MonkeyPatch, max_copied: int = mapping.MAX_COPIED) -> None:
    monkeypatch.setattr(mapping, "_lease", lambda *_: False)
    monkeypatch.setattr(mapping, "MAX_COPIED", max_copied)


def test_a_finished_file_may_be_written_to_by_nobody(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o400


@needs_leases
@pytest.mark.requirement("M1.mapped")
@pytest.mark.parametrize("harm", HARMS)
def test_whoever_writes_to_a_mapped_file_waits_until_its_readers_have_a_copy(
    path: Path, harm: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapping, "POLL_SECONDS", 0.01)
    container = Container.open(path)
    numbers = container.array("numbers")

    harmed(path, harm)

    assert numbers.tolist() == list(range(COUNT))
    assert container.unchanged()
    container.verify()
    assert [file.name for file in path.parent.iterdir() if file.name != "backup"] == ["a.seg"]


@needs_leases
def test_arrays_are_safe_without_the_object_that_they_came_from(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "POLL_SECONDS", 0.01)
    numbers = Container.open(path).array("numbers")

    harmed(path, emptied)

    assert numbers.tolist() == list(range(COUNT))


@needs_leases
def test_the_copy_is_in_memory_where_the_disk_is_full(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    container = Container.open(path)

    harmed(path, emptied)

    assert container.array("numbers").tolist() == list(range(COUNT))
    assert container.unchanged()


@needs_leases
def test_without_room_for_a_copy_the_file_is_not_relied_on_any_more(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapping, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    monkeypatch.setattr(os, "memfd_create", full)
    container = Container.open(path)

    harmed(path, emptied)

    assert not container.unchanged()


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, "no space left on device")


@needs_leases
def test_a_file_that_nobody_views_is_written_to_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping.StableMapping, "part", lambda self: pytest.fail("it was copied"))
    assert Container.open(path).array("numbers")[1] == 1

    harmed(path, emptied)


@pytest.mark.requirement("M1.mapped")
@pytest.mark.parametrize("harm", HARMS)
def test_without_leases_a_small_file_is_read_into_memory(
    path: Path, harm: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    unleased(monkeypatch)
    container = Container.open(path)

    harmed(path, harm)

    assert container.unchanged()
    assert container.array("numbers").tolist() == list(range(COUNT))
    with pytest.raises(ValueError, match="read-only"):
        container.array("numbers")[0] = 1


@pytest.mark.requirement("M1.mapped")
@pytest.mark.parametrize("harm", HARMS)
def test_without_leases_a_change_of_a_large_file_is_noticed(
    path: Path, harm: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    unleased(monkeypatch, max_copied=0)
    container, before = Container.open(path), path.stat()
    assert container.unchanged()

    harmed(path, harm)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert not container.unchanged()


def test_a_file_that_was_removed_stays_what_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unleased(monkeypatch, max_copied=0)
    container = Container.open(path)

    path.unlink()

    assert container.unchanged()
    container.verify()


@needs_leases
def test_a_lease_means_nothing_where_other_machines_write(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(f"22 1 0:50 / {tmp_path} rw - virtiofs share rw\n", encoding="utf-8")
    monkeypatch.setattr(file_system, "MOUNT_TABLE", table)
    monkeypatch.setattr(mapping, "_watcher", None)

    container = Container.open(path)
    harmed(path, zeroed)

    container.verify()
    with pytest.raises(TornError):
        Container.open(path)
