"""Lazy properties that are computed once, even under concurrent access."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, Protocol, Self, TypeVar, overload

from speckit_memory.pipeline.process.clock import opening

T = TypeVar("T")


class LockedObject(Protocol):
    """An object with `Lazy` properties. One reentrant lock guards all of them, so that they may use each other."""

    guard: RLock


class Lazy(Generic[T]):
    """Like `functools.cached_property`, which from Python 3.12 on may compute a value in several threads."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type[LockedObject], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type[LockedObject]) -> Self: ...
    @overload
    def __get__(self, instance: LockedObject, owner: type[LockedObject]) -> T: ...
    def __get__(self, instance: LockedObject | None, owner: type[LockedObject]) -> Self | T:
        """The value. It is stored in the instance's `__dict__`, so that later reads bypass this method."""
        if instance is None:
            return self
        with opening(), instance.guard:
            found = vars(instance)
            if self._name not in found:  # else another thread computed it while this one waited
                found[self._name] = self._compute(instance)
            value: T = found[self._name]
            return value
