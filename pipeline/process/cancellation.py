"""Withdrawal of queries: a withdrawn query ends before its next step.

Python cannot end a thread from outside. So a caller on behalf of another, as the server is for a client, creates a
`Withdrawal`, runs the query within it, and withdraws the query from any other thread; the frame checks before each step
whether the query has been withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class WithdrawnError(BaseException):
    """The query was withdrawn. Not an `Exception`: it is no failure, and there is nothing to handle."""


class Withdrawal:
    """Whether the query that runs within it has been withdrawn. `withdraw` is thread-safe."""

    __slots__ = ("_withdrawn",)

    def __init__(self) -> None:
        self._withdrawn = False

    def withdraw(self) -> None:
        """Withdraws the query; may be repeated, and may come after the answer."""
        self._withdrawn = True

    @property
    def withdrawn(self) -> bool:
        """Whether the query has been withdrawn."""
        return self._withdrawn

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Associates the query that this thread runs inside the block with this withdrawal."""
        token = _asking.set(self)
        try:
            yield
        finally:
            _asking.reset(token)


_asking: ContextVar[Withdrawal | None] = ContextVar("asking", default=None)


def require_wanted() -> None:
    """Raises `WithdrawnError` if this thread's query has been withdrawn."""
    withdrawal = _asking.get()
    if withdrawal is not None and withdrawal.withdrawn:
        raise WithdrawnError
