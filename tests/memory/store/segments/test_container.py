from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from storing.segments import overwrite

from speckit_memory.memory.store.segment_files.container import ALIGNMENT, Container, FileWriter, TornError


def written(path: Path) -> tuple[str, int]:
    with FileWriter(path) as writer:
        writer.add("empty", np.empty((0, 3), np.float32))
        writer.add("numbers", np.arange(5, dtype=np.int64))
        writer.stream("rows", np.float32, (np.full((n, 2), n) for n in (1, 2)), (2,))
        return writer.finish({"sequence": 7})


def test_what_was_written_is_read_where_it_lies(tmp_path: Path) -> None:
    digest, size = written(tmp_path / "a.seg")
    file = Container.open(tmp_path / "a.seg")
    assert (file.digest, file.bytes, file.about["sequence"]) == (digest, size, 7)
    assert (file.array("numbers").tolist(), file.array("empty").shape) == ([0, 1, 2, 3, 4], (0, 3))
    assert file.array("rows").tolist() == [[1, 1], [2, 2], [2, 2]]
    assert all(file.array(name).ctypes.data % ALIGNMENT == 0 for name in ("numbers", "rows"))
    assert "rows" in file and "columns" not in file
    file.verify()
    with pytest.raises(ValueError, match="read-only"):
        file.array("numbers")[0] = 1
    with pytest.raises(KeyError):
        file.array("columns")


def test_the_file_is_for_its_owner_and_stands_alone(tmp_path: Path) -> None:
    written(tmp_path / "a.seg")
    assert [file.name for file in tmp_path.iterdir()] == ["a.seg"]
    assert (tmp_path / "a.seg").stat().st_mode & 0o077 == 0


def test_a_file_that_is_not_finished_leaves_nothing(tmp_path: Path) -> None:
    with FileWriter(tmp_path / "a.seg") as writer:
        writer.add("numbers", np.arange(5))
    with pytest.raises(ZeroDivisionError), FileWriter(tmp_path / "a.seg") as writer:
        writer.stream("numbers", np.int64, (np.arange(1 // n) for n in (1, 0)))
    assert not list(tmp_path.iterdir())


def test_every_changed_byte_of_table_and_arrays_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.seg"
    _, size = written(path)
    whole = path.read_bytes()
    entry = Container.open(path).array("numbers")
    at = whole.index(entry.tobytes())
    for place in (0, at, at + 39, size - 60, size - 41, size - 40, size - 33, size - 1):
        overwrite(path, whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(TornError):
            Container.open(path).verify()


@pytest.mark.parametrize("kept", [0, 1, 16, 40, 100, -1, -8])
def test_a_file_that_was_cut_short_is_found_at_once(kept: int, tmp_path: Path) -> None:
    path = tmp_path / "a.seg"
    written(path)
    overwrite(path, path.read_bytes()[:kept])
    with pytest.raises(TornError):
        Container.open(path)
