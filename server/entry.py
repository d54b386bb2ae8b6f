"""The console script. It imports little: it prepares the process before heavy modules are loaded."""

from __future__ import annotations

import gc
import os
import sys

from speckit_memory.server.console import standard_streams

SINGLE_THREADED = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TOKENIZERS_PARALLELISM")
YOUNG_OBJECTS = 50_000
INTERRUPTED = 130


def main() -> None:
    """Runs the command line and ends the process with its exit status."""
    try:
        _main()
    except KeyboardInterrupt:  # between the first import and the command line's own handler
        os._exit(INTERRUPTED)


def _main() -> None:
    if os.name == "posix" and sys.getfilesystemencoding() != "utf-8":
        # File names may be in any language. If the locale cannot encode them, restart in UTF-8 mode.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    standard_streams.open_what_is_closed()
    # Nothing allocated while modules load is garbage; collecting it takes a tenth of the start-up time.
    gc.disable()
    arguments = sys.argv[1:]
    for name in SINGLE_THREADED:
        # The matrix products of one query are too small for two threads, which are slower. Operators may override this.
        os.environ.setdefault(name, "false" if name.startswith("TOKENIZERS") else "1")
    standard_streams.prepare()
    from speckit_memory.server.commands.cli import run

    gc.freeze()
    gc.enable()
    gc.set_threshold(YOUNG_OBJECTS, 20, 20)
    sys.exit(run(arguments))
