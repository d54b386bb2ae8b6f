"""Calls of components outside a search: what they raise is a result, and an interrupt by the user ends the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def call_guarded(work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    """The result of a component's work, or its exception, which may be a SystemExit; KeyboardInterrupt is raised."""
    try:
        return work(), None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return None, error
