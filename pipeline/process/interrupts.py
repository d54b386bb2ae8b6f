"""Tells the interrupt of a user from one that a component has raised."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn, TypeVar

T = TypeVar("T")


class Interrupts:
    """Knows, from `watch` to `release`, whether Ctrl-C was pressed.

    An interrupt arrives as a signal, in the main thread and nowhere else. Where Python's own handler would turn it
    into a KeyboardInterrupt, this one does, and remembers that it did. A process that ignores the signal, as one that a
    shell has put into the background does, is never interrupted. A program with a handler of its own keeps it; as
    nothing is known there, every KeyboardInterrupt of the main thread counts as the user's.
    """

    def __init__(self) -> None:
        self._pressed = False
        self._unknown = False
        self._replaced = False

    def watch(self) -> None:
        """From here on."""
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            self._replaced = handler is signal.default_int_handler
            self._unknown = not self._replaced and handler is not signal.SIG_IGN
            if self._replaced:
                signal.signal(signal.SIGINT, self._interrupted)

    def release(self) -> None:
        """As it was before."""
        if self._replaced:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _interrupted(self, number: int, frame: FrameType | None) -> NoReturn:
        self._pressed = True
        signal.default_int_handler(number, frame)

    def users(self, raised: BaseException | None) -> bool:
        """Whether the user has interrupted a step that raised this, or nothing: it may have kept it to itself."""
        return self._pressed or (self._unknown and isinstance(raised, KeyboardInterrupt))


def guarded(work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    """What a piece of work of a component answers, or what it raised, unless that was the user's interrupt."""
    answer, raised = None, None
    interrupts = Interrupts()
    interrupts.watch()
    try:
        answer = work()
    except BaseException as error:
        raised = error
    finally:
        interrupts.release()
    if interrupts.users(raised):
        raise KeyboardInterrupt
    return answer, raised
