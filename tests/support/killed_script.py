"""Runs a script, and kills it at a point that a test names: see `killing`.

`killed_script.py SCRIPT ARGUMENT...` runs the text of the script as the main program. A point is a statement or a
commit of SQLite, a message to PostgreSQL, or a change of the files below the test's folder.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from itertools import count
from pathlib import Path
from typing import Any

ROOT, KILL_AT, TOLD = (os.environ.get(f"KILLED_{name}", "") for name in ("ROOT", "AT", "TOLD"))
LAST = int(KILL_AT or 0)
FILES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.move", "shutil.rmtree", "os.utime")

if ROOT:
    import apsw

    passed = count(1)

    def point() -> None:
        """One more is passed, unless it is the last."""
        if next(passed) == LAST:
            os.kill(os.getpid(), signal.SIGKILL)

    def changed(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and len(arguments) == 3:
            path, _, flags = arguments
            if not (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)):
                return
        elif event in FILES:
            path = arguments[0]
        else:
            return
        if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(ROOT):
            point()

    def followed(connection: apsw.Connection) -> None:
        def stated(*_: object) -> bool:
            point()
            return True

        def committing() -> bool:
            point()
            return False

        if connection.filename.startswith(ROOT):
            connection.exec_trace = stated
            connection.set_commit_hook(committing)

    def over() -> None:
        Path(TOLD).write_text(str(next(passed) - 1))

    apsw.connection_hooks.append(followed)
    sys.addaudithook(changed)
    if any(argument.startswith("postgresql://") for argument in sys.argv):
        import psycopg

        wait = psycopg.Connection.wait

        def sent(*arguments: Any) -> Any:
            point()
            return wait(*arguments)

        psycopg.Connection.wait = sent  # type: ignore[method-assign, assignment]
    if TOLD:
        import atexit

        atexit.register(over)

if __name__ == "__main__":
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
