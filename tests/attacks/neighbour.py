"""A process that swaps a file and a folder for other things, as fast as it can, until its standard input is closed.

`python neighbour.py FILE OUTSIDE BESIDE`: the file and the folder it lies in are swapped, each at once by a rename, for
links into the folder OUTSIDE and for a named pipe; BESIDE is a folder for what is not in place. Writes how often.
"""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

file, outside, beside = map(Path, sys.argv[1:])
good = file.read_text(encoding="utf-8")
folder, link, away = file.parent, beside / "link", beside / "away"
link.symlink_to(outside)
new, swaps = beside / "new", 0
while not select.select([sys.stdin], [], [], 0)[0]:
    for kind in ("link", "pipe", "file"):
        if kind == "link":
            new.symlink_to(outside / file.name)
        elif kind == "pipe":
            os.mkfifo(new)
        else:
            new.write_text(good, encoding="utf-8")
        new.rename(file)
    folder.rename(away)
    link.rename(folder)
    folder.rename(link)
    away.rename(folder)
    swaps += 5
sys.stdout.write(str(swaps))
