"""The rule for a memory's confidence, from the judgements of its readers (feature F17)."""

from __future__ import annotations

BIRTH = 0.5
"""The confidence of a memory without judgements."""
USEFUL = 0.10
"""Added by a judgement "useful"."""
NOT_USEFUL = 0.05
"""Subtracted by a judgement "not useful"."""
PROMOTABLE = 0.9
"""The minimum confidence of a memory that may become critical."""
VALIDATIONS = 5
"""The minimum number of judgements for that, of either kind."""

_DECIMALS = 6
"""Steps of 0.05 are not exact in binary: without rounding, 0.5 + 4 · 0.1 falls short of 0.9."""


def judged_confidence(confidence: float, useful: bool) -> float:
    """The confidence after one more judgement, in [0, 1]."""
    changed = confidence + USEFUL if useful else confidence - NOT_USEFUL
    return min(1.0, max(0.0, round(changed, _DECIMALS)))


def promotable(confidence: float, validations: int) -> bool:
    """Whether confidence and the number of judgements suffice for the tier critical."""
    return confidence >= PROMOTABLE and validations >= VALIDATIONS
