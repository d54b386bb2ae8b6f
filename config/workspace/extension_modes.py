"""Where components of installed extensions may run, and in how much memory (docs/extending.md)."""

from __future__ import annotations

from typing import Literal

Mode = Literal["trusted", "isolated", "none"]
MODES: tuple[Mode, ...] = ("trusted", "isolated", "none")
"""In this process, in a process of their own, or not at all."""

MEMORY_MB = 2048
"""How much address space the process of isolated extensions may have unless somebody says otherwise."""

LEAST_MEMORY_MB = 256
"""Below this the process cannot start: Python and numpy alone take half of it."""

ACCEPTED_MEMORY = f"a whole number of megabytes from {LEAST_MEMORY_MB} up, or 0 for no limit"


def enough(megabytes: int) -> bool:
    """Whether a limit leaves the process room to start; 0 is no limit."""
    return megabytes == 0 or megabytes >= LEAST_MEMORY_MB
