"""Whether one question asks another one again in other words.

A question that is rephrased at once says that the first answer did not help (Hassan, Shi, Craswell and Ramsey, "Beyond
clicks: query reformulation as a predictor of search satisfaction", CIKM 2013).
"""

from __future__ import annotations

from functools import cache

from speckit_memory.memory.parsing.analysis import Analyser

SHARED = 0.5
"""Minimum share of the content words of the shorter question that both questions contain."""


def are_similar(first: str, second: str) -> bool:
    """Whether two questions share half of the content words of the shorter one, in whatever inflection."""
    one, other = ({*_analyser().tokens(text)} for text in (first, second))
    return bool(one and other) and len(one & other) >= SHARED * min(len(one), len(other))


@cache
def _analyser() -> Analyser:
    return Analyser()
