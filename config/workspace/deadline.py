"""The deadline after which a search skips costly and optional steps (feature P9)."""

from __future__ import annotations

import math

from speckit_memory.config.workspace.settings import DEADLINE_MS, DEADLINE_VARIABLE, Settings
from speckit_memory.config.workspace.workspace_file import load_workspace_config
from speckit_memory.errors import SpeckitError, refused

LONGEST_MS = 1e9
"""Eleven days. Larger values mean no deadline, and would overflow clocks that count nanoseconds."""


def deadline_in_force(config: Settings) -> float | None:
    """The deadline of searches in milliseconds, None for none: environment, then the workspace's file, then default.

    Raises SpeckitError for an invalid value in the environment or the file.
    """
    written = config.environ.get(DEADLINE_VARIABLE)
    in_file = load_workspace_config(config.root).deadline_ms
    return deadline_of(written, DEADLINE_VARIABLE) if written else min(in_file or DEADLINE_MS, LONGEST_MS)


def deadline_of(value: float | str, name: str) -> float | None:
    """Parse a deadline in milliseconds given under `name`; None for no deadline. Raises E030."""
    try:
        milliseconds = float(value)
    except ValueError:
        milliseconds = math.nan
    # Also false for NaN.
    if not 0 <= milliseconds < math.inf:
        accepted = "a number of milliseconds, 0 for no deadline"
        raise SpeckitError.of([refused(name, str(value), accepted, f"set {name} to a number such as {DEADLINE_MS:g}")])
    return min(milliseconds, LONGEST_MS) or None
