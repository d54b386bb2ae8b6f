"""Questions that their asker has taken back: what is done for them ends before its next step.

Python ends no thread from outside. So who asks for another, as the server does for a client, makes a `Withdrawal`, asks
within it, and takes the question back from any other thread; the frame looks before each step whether it still counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class WithdrawnError(BaseException):
    """Nobody waits for the answer any more. No `Exception`: it is no failure, and nothing is to be done instead."""


class Withdrawal:
    """Whether the question that is asked within it was taken back. `withdraw` may be called by any thread."""

    __slots__ = ("_withdrawn",)

    def __init__(self) -> None:
        self._withdrawn = False

    def withdraw(self) -> None:
        """Takes the question back; it may be repeated, and come when the answer is there already."""
        self._withdrawn = True

    @property
    def withdrawn(self) -> bool:
        """Whether nobody waits any more."""
        return self._withdrawn

    @contextmanager
    def asking(self) -> Iterator[None]:
        """What is asked inside, by this thread, is the question."""
        token = _asking.set(self)
        try:
            yield
        finally:
            _asking.reset(token)


_asking: ContextVar[Withdrawal | None] = ContextVar("asking", default=None)


def require_wanted() -> None:
    """Raises `WithdrawnError` when what this thread is asked was taken back."""
    withdrawal = _asking.get()
    if withdrawal is not None and withdrawal.withdrawn:
        raise WithdrawnError
