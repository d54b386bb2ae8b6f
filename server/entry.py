"""The console script. Light on purpose: it decides what may be imported before anything heavy is."""

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
        # Files have names in any language, whatever the locale: where it cannot spell them, the interpreter has to.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    standard_streams.open_what_is_closed()
    # Nothing allocated while modules load is garbage; collecting then costs a tenth of the start-up.
    gc.disable()
    arguments = sys.argv[1:]
    for name in SINGLE_THREADED:
        # One query is too small a matrix product for two threads: they make it slower. An operator may still decide.
        os.environ.setdefault(name, "false" if name.startswith("TOKENIZERS") else "1")
    standard_streams.prepare()
    from speckit_memory.server.commands.cli import run

    gc.freeze()
    gc.enable()
    gc.set_threshold(YOUNG_OBJECTS, 20, 20)
    sys.exit(run(arguments))
