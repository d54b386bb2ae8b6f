"""The states of a feature flag, in the order of its life (features P4, P11)."""

from __future__ import annotations

STATES = ("off", "dark_run", "shadow", "enabled", "permanent")
"""A flag advances by one state at a time, and may go back."""

ON = ("enabled", "permanent")
"""Steps behind the flag take part in the served answer."""
ACTIVE = ("dark_run", "shadow", "enabled")
"""States that cost time or change answers, and are not final."""

WORDS = {"true": "enabled", "false": "off"}
"""Values of an environment variable accepted instead of a state."""


def ahead(before: str, after: str) -> int:
    """How many states `after` is ahead of `before`; negative if it is behind."""
    return STATES.index(after) - STATES.index(before)
