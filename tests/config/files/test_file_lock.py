from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from speckit_memory.config.files.file_lock import locked

HOLDER = """
import sys, time
from pathlib import Path
from speckit_memory.config.files.file_lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.usefixtures("processes")
def test_the_lock_of_a_killed_process_blocks_nobody_and_that_of_a_living_one_does(tmp_path: Path) -> None:
    file = tmp_path / "flags.yaml"
    with subprocess.Popen([sys.executable, "-c", HOLDER, file], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(TimeoutError), locked(file, patience=0.05):
            pass
        holder.kill()
        holder.wait()
    assert (tmp_path / "flags.yaml.lock").exists()  # what the killed one left
    begun = time.monotonic()
    with locked(file):
        assert time.monotonic() - begun < 5
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_which_nothing_can_be_made_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), locked(tmp_path / "none" / "flags.yaml"):
        pass
