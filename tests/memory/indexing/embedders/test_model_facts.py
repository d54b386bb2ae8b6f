"""What is kept of the model's files is used while they are as they were, and only when nobody else can have made it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

from speckit_memory.memory.models.embedders import StaticEmbedder, model_facts, user_cache
from speckit_memory.memory.models.embedders.model_facts import ModelFacts, facts_of
from speckit_memory.memory.models.embedders.static import _TOKENIZER

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and modes are those of POSIX")
TEXT = "why are scores added?"
DAY_AGO = time.time() - 86_400
IN_ANOTHER_PROCESS = f"""
import sys
from speckit_memory.memory.models.embedders import StaticEmbedder
print(StaticEmbedder().model_id, StaticEmbedder().tokenise([{TEXT!r}])[0].tolist(), "tokenizers" in sys.modules)
"""


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where things are kept in a test; the folder is there when something was."""
    base = tmp_path / "cache"
    base.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    monkeypatch.setattr("sys.platform", "linux")
    return base / "speckit-memory"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Weights that are only read for their digest, and the bundled tokeniser; both count as old."""
    monkeypatch.setattr(model_facts, "SETTLED_NS", -1)
    weights, tokeniser = tmp_path / "weights", tmp_path / "tokeniser.json"
    weights.write_bytes(b"weights")
    shutil.copyfile(StaticEmbedder()._data() / _TOKENIZER, tokeniser)
    return weights, tokeniser


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An entry for each time that a table was made of the tokeniser."""
    made: list[str] = []
    original = model_facts._table

    def table(tokeniser: bytes) -> object:
        made.append("table")
        return original(tokeniser)

    monkeypatch.setattr(model_facts, "_table", table)
    return made


def digest(files: tuple[Path, Path]) -> str:
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def whole(facts: ModelFacts, files: tuple[Path, Path]) -> bool:
    cut = facts.table.cut(TEXT) if facts.table else None
    return facts.digest == digest(files) and (cut is None or cut.tolist() == of_library())


@cache
def of_library() -> list[int]:
    """The token numbers of the text as the library cuts it."""
    ids: list[int] = StaticEmbedder()._read_tokeniser().tokenizer.encode(TEXT, add_special_tokens=False).ids
    return ids


@pytest.mark.requirement("P10", "I6")
def test_what_was_worked_out_is_kept_for_this_account_alone(
    shelf: Path, files: tuple[Path, Path], worked_out: list[str]
) -> None:
    first, second = facts_of(*files), facts_of(*files)

    assert worked_out == ["table"]
    assert first.table is not None
    assert second.table is not None
    assert second.table.to_bytes() == first.table.to_bytes()
    assert whole(first, files)
    assert whole(second, files)
    (kept,) = shelf.iterdir()
    assert stat.S_IMODE(shelf.stat().st_mode) == 0o700
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@pytest.mark.requirement("P10", "I6")
@pytest.mark.parametrize("which", [0, 1], ids=["weights", "tokeniser"])
def test_a_changed_file_is_noticed_even_when_it_looks_old(shelf: Path, files: tuple[Path, Path], which: int) -> None:
    before, changed = facts_of(*files), files[which]
    about = changed.stat()
    content = changed.read_bytes()
    changed.write_bytes(content[:-1] + (b"\n" if content[-1:] != b"\n" else b" "))
    os.utime(changed, ns=(about.st_atime_ns, about.st_mtime_ns))

    after = facts_of(*files)

    assert after.digest != before.digest
    assert whole(after, files)
    assert len(list(shelf.iterdir())) == 1  # in the place of the earlier one


def flipped(kept: Path) -> None:
    data = bytearray(kept.read_bytes())
    data[len(data) // 2] ^= 1
    kept.write_bytes(data)


def foreign(kept: Path) -> None:
    data = b"something else altogether"
    kept.write_bytes(sha256(data).digest() + data)


def torn_table(kept: Path) -> None:
    data = b"\n".join((*kept.read_bytes()[32:].split(b"\n", 2)[:2], b'{"order": 1}\n'))
    kept.write_bytes(sha256(data).digest() + data)


def linked(kept: Path) -> None:
    kept.rename(kept.with_name("elsewhere"))
    kept.symlink_to(kept.with_name("elsewhere"))


def folder(kept: Path) -> None:
    kept.unlink()
    kept.mkdir()


HARMS: dict[str, Callable[[Path], object]] = {
    "cut_short": lambda kept: kept.write_bytes(kept.read_bytes()[:-7]),
    "flipped": flipped,
    "foreign": foreign,
    "torn_table": torn_table,
    "empty": lambda kept: kept.write_bytes(b""),
    "open_to_others": lambda kept: kept.chmod(0o666),
    "in_open_folder": lambda kept: kept.parent.chmod(0o777),
    "linked": linked,
    "folder": folder,
}


@pytest.mark.requirement("P10")
@pytest.mark.parametrize("harm", HARMS)
def test_what_is_damaged_or_could_be_of_others_is_not_used(
    shelf: Path, files: tuple[Path, Path], worked_out: list[str], harm: str
) -> None:
    facts_of(*files)
    (kept,) = shelf.iterdir()
    HARMS[harm](kept)

    assert user_cache.load(kept.stem) is None or harm in ("foreign", "torn_table")
    assert whole(facts_of(*files), files)
    if harm not in ("in_open_folder", "folder"):  # where nothing is kept, or it cannot be put in the place of that
        assert worked_out == ["table", "table"]
        assert whole(facts_of(*files), files)
        assert worked_out == ["table", "table"]


@pytest.mark.requirement("P10")
@pytest.mark.parametrize("place", ["relative", "/dev/null", "\0", "/proc/none", ""])
def test_without_a_folder_for_it_nothing_is_kept(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, worked_out: list[str], place: str
) -> None:
    monkeypatch.setattr("os.environ", {"XDG_CACHE_HOME": place, "HOME": str(tmp_path / "missing")})

    assert facts_of(*files) == ModelFacts(digest(files), None)
    assert worked_out == []  # the library is as fast as making a table
    assert not (tmp_path / "missing").exists()


def test_a_file_of_this_moment_is_not_kept(
    shelf: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_facts, "SETTLED_NS", 3_600_000_000_000)
    assert facts_of(*files) == ModelFacts(digest(files), None)
    assert not shelf.exists()


def test_reading_for_long_does_not_make_a_file_old(
    shelf: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_facts, "SETTLED_NS", 3_600_000_000_000)
    read = Path.read_bytes

    def slowly(path: Path) -> bytes:
        now = time.time_ns()
        monkeypatch.setattr(time, "time_ns", lambda: now + 2 * model_facts.SETTLED_NS)
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", slowly)
    assert facts_of(*files).table is None
    assert not shelf.exists()


def test_few_files_are_kept_and_no_leftovers(shelf: Path) -> None:
    for number in range(user_cache.MOST_FILES + 4):
        user_cache.keep(f"n{number:02}", b"x")
        os.utime(shelf / f"n{number:02}.kept", (DAY_AGO + number, DAY_AGO + number))
    assert len(list(shelf.iterdir())) == user_cache.MOST_FILES
    assert user_cache.load("n00") is None
    assert user_cache.load(f"n{user_cache.MOST_FILES + 3:02}") == b"x"


@pytest.mark.requirement("P10", "I6")
@pytest.mark.usefixtures("processes")
def test_processes_at_once_find_the_same_and_later_ones_do_without_the_library(shelf: Path) -> None:
    def run(_: int) -> str:
        command = [sys.executable, "-c", IN_ANOTHER_PROCESS]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    with ThreadPoolExecutor(3) as pool:
        told = set(pool.map(run, range(3)))

    assert told == {f"{StaticEmbedder().model_id} {of_library()} False\n"}
    assert [path.suffix for path in shelf.iterdir()] == [".kept"]
