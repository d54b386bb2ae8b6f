"""Chooses the mode of `memory_context` when the caller gives none (feature T1)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Mode = Literal["quick", "deep", "focused", "resume"]

SHORT_INPUT = 50
DEEP_INTENTS = frozenset({"add_feature", "refactor", "security_audit"})
_QUESTION = re.compile(r"(?:what|how|where|when|why)\b", re.IGNORECASE)
_RESUME = re.compile(
    r"^\W*(?:(?:please|ok|okay|now|so|let'?s|let us|can|could|we|you|i|want to)\W+)*"
    r"(?:resume|continue|pick(?:ing)? up|carry on|go on|keep going|get back to|catch me up)\b"
    r"|\bwhere (?:was i|were we|are we|did (?:i|we) (?:stop|leave))\b|\b(?:left|leave) off\b"
    r"|\bwhat(?:'s|’s| is| comes) next\b|\bwhat (?:to|should (?:i|we)) do next\b"
    r"|^\W*what (?:was i|were we) (?:doing|working on)\b",
    re.IGNORECASE,
)
"""Phrases that ask to resume work. "continue" in the middle of a question does not count."""


@dataclass(frozen=True, slots=True)
class ModeSettings:
    """The settings of a mode: token budget of the answer and number of results."""

    budget: int
    limit: int


SETTINGS: dict[Mode, ModeSettings] = {
    "quick": ModeSettings(800, 5),
    "deep": ModeSettings(2000, 10),
    "focused": ModeSettings(1500, 8),
    "resume": ModeSettings(1200, 5),
}


def choose(text: str, intent: Callable[[], str]) -> tuple[Mode, str]:
    """Chooses a mode and gives the reason; `intent` is evaluated last because it costs most."""
    if _RESUME.search(text):
        return "resume", "the input asks to go on with earlier work"
    if len(text) < SHORT_INPUT:
        return "focused", "the input is short"
    if _QUESTION.match(text):
        return "focused", "the input is a question"
    found = intent()
    return ("deep" if found in DEEP_INTENTS else "focused"), f"the intent is {found}"
