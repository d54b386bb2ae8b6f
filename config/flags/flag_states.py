"""The states of a feature flag, in the order in which a flag goes through them (features P4, P11)."""

from __future__ import annotations

STATES = ("off", "dark_run", "shadow", "enabled", "permanent")
"""A flag advances by one state at a time, and may go back."""

ON = ("enabled", "permanent")
"""Steps behind the flag take part in the served answer."""
ACTIVE = ("dark_run", "shadow", "enabled")
"""What costs something or changes answers, and is not settled yet."""

WORDS = {"true": "enabled", "false": "off"}
"""What an environment variable may say in the place of a state."""


def ahead(before: str, after: str) -> int:
    """How many states `after` lies ahead of `before`; below 0 when it goes back."""
    return STATES.index(after) - STATES.index(before)
