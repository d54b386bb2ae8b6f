"""Where components of installed extensions may run, and their memory limit (docs/extending.md)."""

from __future__ import annotations

from typing import Literal

Mode = Literal["trusted", "isolated", "none"]
MODES: tuple[Mode, ...] = ("trusted", "isolated", "none")
"""In this process, in a separate process, or not at all."""

MEMORY_MB = 2048
"""Default address space in megabytes of the process of isolated extensions."""

LEAST_MEMORY_MB = 256
"""The minimum with which the process can start: Python and numpy alone take half of it."""

ACCEPTED_MEMORY = f"a whole number of megabytes from {LEAST_MEMORY_MB} up, or 0 for no limit"


def enough(megabytes: int) -> bool:
    """Whether the process can start with this limit; 0 means no limit."""
    return megabytes == 0 or megabytes >= LEAST_MEMORY_MB
