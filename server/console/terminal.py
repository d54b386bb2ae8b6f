"""The width of the terminal, and whether to use colour."""

from __future__ import annotations

import os
import sys
from typing import TextIO

LEAST_COLUMNS = 20
USUAL_COLUMNS = 80
PLAIN_TERMINALS = ("dumb", "unknown")


def columns(stream: TextIO | None = None) -> int | None:
    """The width of the terminal of `stream` (default: standard output) in cells, at least 20; COLUMNS overrides it.

    None without a terminal, so that output to a pipe does not depend on a window's size.
    """
    stream = stream or sys.stdout
    if not stream.isatty():
        return None
    said = os.environ.get("COLUMNS", "")
    # ignore COLUMNS values that are not positive numbers
    if said.isascii() and said.isdigit() and int(said):
        return max(int(said), LEAST_COLUMNS)
    try:
        return max(os.get_terminal_size(stream.fileno()).columns or USUAL_COLUMNS, LEAST_COLUMNS)
    except OSError:
        return USUAL_COLUMNS


def colour() -> bool | None:
    """Whether to use colour: True or False if the environment decides, None for "on a terminal only".

    NO_COLOR (not empty), CLICOLOR=0 and a TERM without colours take precedence over FORCE_COLOR and CLICOLOR_FORCE.
    """
    environ = os.environ
    if environ.get("NO_COLOR") or environ.get("CLICOLOR") == "0" or plain():
        return False
    forced = (environ.get("FORCE_COLOR", ""), environ.get("CLICOLOR_FORCE", ""))
    return True if any(value not in ("", "0") for value in forced) else None


def plain() -> bool:
    """Whether the terminal supports neither colour nor cursor movement."""
    return os.environ.get("TERM", "").lower() in PLAIN_TERMINALS
