"""What the terminal can show: how wide it is, and whether it wants colour."""

from __future__ import annotations

import os
import sys
from typing import TextIO

LEAST_COLUMNS = 20
USUAL_COLUMNS = 80
PLAIN_TERMINALS = ("dumb", "unknown")


def columns(stream: TextIO | None = None) -> int | None:
    """Cells of a line of the terminal behind `stream` (standard output), at least 20; COLUMNS may say otherwise.

    None when no terminal is there: nothing has to fit then, and a pipe gets the same whatever the window's size.
    """
    stream = stream or sys.stdout
    if not stream.isatty():
        return None
    said = os.environ.get("COLUMNS", "")
    if said.isascii() and said.isdigit() and int(said):
        return max(int(said), LEAST_COLUMNS)
    try:
        return max(os.get_terminal_size(stream.fileno()).columns or USUAL_COLUMNS, LEAST_COLUMNS)
    except OSError:
        return USUAL_COLUMNS


def colour() -> bool | None:
    """Whether to write in colour: False or True where the environment decides, None for "on a terminal only".

    NO_COLOR (not empty), CLICOLOR=0 and a TERM without colours say no, before FORCE_COLOR and CLICOLOR_FORCE say yes.
    """
    environ = os.environ
    if environ.get("NO_COLOR") or environ.get("CLICOLOR") == "0" or plain():
        return False
    forced = (environ.get("FORCE_COLOR", ""), environ.get("CLICOLOR_FORCE", ""))
    return True if any(value not in ("", "0") for value in forced) else None


def plain() -> bool:
    """Whether the terminal understands text alone, no colour and no going back on a line."""
    return os.environ.get("TERM", "").lower() in PLAIN_TERMINALS
