"""Which mode `memory_context` uses when the caller leaves the choice to us (features T1, C17)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Mode = Literal["quick", "deep", "focused", "resume"]

FOCUSED_PRESSURE = 0.60
QUICK_PRESSURE = 0.80
SHORT_INPUT = 50
DEEP_INTENTS = frozenset({"add_feature", "refactor", "security_audit"})
_QUESTION = re.compile(r"(?:what|how|where|when|why)\b", re.IGNORECASE)
_RESUME = re.compile(r"\b(?:resume|continue|pick up|where was i|what(?:'s| is) next)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModeSettings:
    """What a mode costs: the token budget of the answer and how many results it asks for."""

    budget: int
    limit: int


SETTINGS: dict[Mode, ModeSettings] = {
    "quick": ModeSettings(800, 5),
    "deep": ModeSettings(2000, 10),
    "focused": ModeSettings(1500, 8),
    "resume": ModeSettings(1200, 5),
}


def under_pressure(token_usage: float | None) -> bool:
    """Whether the caller's context is so full that it decides about the mode."""
    return token_usage is not None and token_usage >= FOCUSED_PRESSURE


def choose(text: str, token_usage: float | None, intent: Callable[[], str]) -> tuple[Mode, str]:
    """A mode and the reason for it.

    `token_usage` is the share of the caller's context that is full, 0 to 1; a full context wins over everything else.
    `intent` is asked last, because it costs most.
    """
    if token_usage is not None and token_usage > QUICK_PRESSURE:
        return "quick", f"the context is {token_usage:.0%} full"
    if token_usage is not None and token_usage >= FOCUSED_PRESSURE:
        return "focused", f"the context is {token_usage:.0%} full"
    if _RESUME.search(text):
        return "resume", "the input asks to go on with earlier work"
    if len(text) < SHORT_INPUT:
        return "focused", "the input is short"
    if _QUESTION.match(text):
        return "focused", "the input is a question"
    found = intent()
    return ("deep" if found in DEEP_INTENTS else "focused"), f"the intent is {found}"
