"""What was answered, where nothing else than an answer will do."""

from __future__ import annotations

from typing import TypeVar

from speckit_memory.pipeline.ports import Unavailable

T = TypeVar("T")


def present(answer: T | Unavailable) -> T:
    """The answer itself; fails with the reason where there is none."""
    assert not isinstance(answer, Unavailable), answer.reason
    return answer
