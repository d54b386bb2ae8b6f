"""How far a memory is trusted, by what its readers found: the rule (feature F17)."""

from __future__ import annotations

BIRTH = 0.5
"""The confidence of a memory that nobody judged."""
USEFUL = 0.10
"""What a judgement "it was useful" adds."""
NOT_USEFUL = 0.05
"""What a judgement "it was not" takes off."""
PROMOTABLE = 0.9
"""The least confidence of a memory that may become critical."""
VALIDATIONS = 5
"""The least number of judgements for that, of either kind."""

_DECIMALS = 6
"""Steps of 0.05 are no binary fractions: without rounding, 0.5 + 4 · 0.1 falls short of 0.9."""


def judged(confidence: float, useful: bool) -> float:
    """The confidence after one more judgement, in [0, 1]."""
    changed = confidence + USEFUL if useful else confidence - NOT_USEFUL
    return min(1.0, max(0.0, round(changed, _DECIMALS)))


def promotable(confidence: float, validations: int) -> bool:
    """Whether readers have said enough, and well enough, for the tier critical."""
    return confidence >= PROMOTABLE and validations >= VALIDATIONS
