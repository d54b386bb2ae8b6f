"""What was answered, where nothing else than an answer, or than a certain error, will do."""

from __future__ import annotations

from typing import TypeVar

import pytest

from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.ports import Unavailable

T = TypeVar("T")


def present(answer: T | Unavailable) -> T:
    """The answer itself; fails with the reason where there is none."""
    assert not isinstance(answer, Unavailable), answer.reason
    return answer


def refused(code: str, match: str | None = None) -> pytest.RaisesExc[SpeckitError]:
    """A block that must end in an error of the product with this code, as that of its first problem."""
    return pytest.raises(SpeckitError, match=match, check=lambda error: error.code == code)
