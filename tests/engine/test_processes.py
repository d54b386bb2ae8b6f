"""Several processes on one file: nothing is locked out, nothing is lost (feature M1)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("processes")

COMMAND = Path(sys.executable).parent / "speckit-memory"
SECONDS = 20
WRITER = """
import sys, time
from pathlib import Path
from speckit_memory.engine import Memory

root, name, seconds = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
folder = root / name
folder.mkdir()
written = 0
end = time.monotonic() + seconds
with Memory.open(root / "m.db", root=root, environ={}) as memory:
    while time.monotonic() < end:
        for number in range(5):
            (folder / f"{written}.md").write_text(f"# Note {name} {written}\\n\\nThe {name} wrote number{written}.\\n")
            written += 1
        report = memory.index([folder])
        assert not report.failures, report.failures
        found = memory.search(f"number{written - 1} {name}", limit=3, deadline_ms=None)
        assert f"{name}/{written - 1}.md" in [row.key for row in found.results], found.results
print(written)
"""


@pytest.mark.requirement("M1")
@pytest.mark.timeout(120)
def test_two_processes_index_and_search_one_file_at_once(tmp_path: Path) -> None:
    environ = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), name, str(SECONDS)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ,
        )
        for name in ("left", "right")
    ]  # fmt: skip
    ends = [writer.communicate(timeout=SECONDS + 60) for writer in writers]

    assert [writer.returncode for writer in writers] == [0, 0], ends
    expected = {
        f"{name}/{n}.md" for name, (out, _) in zip(("left", "right"), ends, strict=True) for n in range(int(out))
    }
    listed = subprocess.run(
        [COMMAND, "search", "wrote", "--db", tmp_path / "m.db", "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(listed.stdout)["results"]
    assert keys_of(tmp_path / "m.db") == expected


def keys_of(path: Path) -> set[str]:
    from speckit_memory.engine import Memory

    with Memory.open(path, environ={}) as memory:
        assert memory.session.database.check() == []
        return {row.key for row in memory.list(limit=100_000)[0]}


def test_a_search_during_an_index_run_of_another_process_waits_for_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(300):
        (folder / f"{number}.md").write_text(f"# Note {number}\n\n" + f"word{number} and more text. " * 200)
    indexing = subprocess.Popen([COMMAND, "index", "docs", "--db", "m.db"], cwd=tmp_path, stderr=subprocess.DEVNULL)
    answers = 0
    while indexing.poll() is None:
        if (tmp_path / "m.db").exists():
            done = subprocess.run(
                [COMMAND, "search", "word1", "--db", "m.db", "--json"], cwd=tmp_path, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            answers += done.returncode == 0
            assert "locked" not in done.stdout + done.stderr
        time.sleep(0)

    assert indexing.returncode == 0
    assert answers
