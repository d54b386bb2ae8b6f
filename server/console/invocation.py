"""How the program was called, so that printed commands can be run unchanged."""

from __future__ import annotations

import sys
from pathlib import Path

PROGRAM = "speckit-memory"


def program_name() -> str:
    """The program's name if the shell finds this installation by it, else the path it was called by."""
    import shlex
    import shutil

    found, path = shutil.which(PROGRAM), Path(sys.argv[0])
    if not path.is_file() or (found and Path(found).samefile(path)):
        return PROGRAM
    return shlex.quote(str(path))
