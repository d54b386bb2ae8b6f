"""Distinguishes an interrupt by the user from a KeyboardInterrupt raised by a component."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn, TypeVar

T = TypeVar("T")


class Interrupts:
    """Detects whether Ctrl-C was pressed between `watch` and `release`.

    An interrupt arrives as a signal, only in the main thread. If Python's default handler is installed, it is replaced
    by one that also raises KeyboardInterrupt, but records it. A process that ignores the signal, such as a background
    job of a shell, is never interrupted. A program's own handler stays in place; the origin is then unknown, so every
    KeyboardInterrupt in the main thread counts as the user's.
    """

    def __init__(self) -> None:
        self._pressed = False
        self._unknown = False
        self._replaced = False

    def watch(self) -> None:
        """Starts watching."""
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            self._replaced = handler is signal.default_int_handler
            self._unknown = not self._replaced and handler is not signal.SIG_IGN
            if self._replaced:
                signal.signal(signal.SIGINT, self._interrupted)

    def release(self) -> None:
        """Stops watching and restores the default handler."""
        if self._replaced:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _interrupted(self, number: int, frame: FrameType | None) -> NoReturn:
        self._pressed = True
        signal.default_int_handler(number, frame)

    def users(self, raised: BaseException | None) -> bool:
        """Whether the user has interrupted a step that raised this, or None: it may have swallowed the interrupt."""
        return self._pressed or (self._unknown and isinstance(raised, KeyboardInterrupt))


def call_guarded(work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    """The result of a component's work, or its exception; an interrupt by the user is raised again."""
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
