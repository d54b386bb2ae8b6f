"""Writes into whatever it is handed, by every way that Python and numpy offer, and says how many ways it tried.

Ways that break the interpreter's own memory are left out. Numpy warns of some of the others: tests ignore that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

JUNK: dict[str, Any] = {"i": 7, "u": 7, "f": 0.123, "b": True, "O": "junk", "U": "junk"}
DEEPEST = 12


def vandalise(answer: object, depth: int = 0) -> int:
    """Spoils an answer, what it holds and what it leads to without a private name; returns the number of attempts."""
    if depth > DEEPEST or answer is None or isinstance(answer, str | bytes | int | float | frozenset | type):
        return 0
    if isinstance(answer, np.ndarray):
        return sum(map(_spoil_array, _way_down(answer)))
    tried = 0
    for part in _parts(answer):
        tried += vandalise(part, depth + 1)
    for attempt in _attempts(answer):
        with suppress(Exception):
            attempt()
        tried += 1
    return tried


def public(thing: object) -> list[str]:
    """The names of an object that are meant for others."""
    return [name for name in dir(thing) if not name.startswith("_")]


def swap(thing: object) -> int:
    """Tries to put something else in the place of every public name of an object, and to take it away."""
    tried = 0
    for name in public(thing):
        for attempt in (setattr, object.__setattr__):
            with suppress(Exception):
                attempt(thing, name, _broken)
            tried += 1
        for forget in (delattr, object.__delattr__):
            with suppress(Exception):
                forget(thing, name)
            tried += 1
    with suppress(Exception):
        vars(thing).clear()
    return tried + 1


def _broken(*_: object, **__: Any) -> Any:
    raise RuntimeError("out of order")


def _parts(answer: object) -> list[Any]:
    """What an answer holds."""
    if isinstance(answer, Mapping):
        return [*answer.keys(), *answer.values()]
    if isinstance(answer, list | tuple | set):
        return list(answer)
    if dataclasses.is_dataclass(answer):
        return [getattr(answer, field.name, None) for field in dataclasses.fields(answer)]
    return []


def _attempts(answer: Any) -> Iterator[Callable[[], object]]:
    """All that can be tried on an object that is no array."""
    yield lambda: swap(answer)
    held: Any = answer  # to the type checker no more than something that may be tried
    if isinstance(answer, list):
        yield lambda: answer.append("junk")
        yield answer.reverse
        yield lambda: answer.__setitem__(slice(None), ["junk"])
    elif isinstance(answer, set):
        yield answer.clear
    elif isinstance(answer, Mapping):
        yield partial(_put, held, "junk")
        for key in list(answer):
            yield partial(_put, held, key)
        yield lambda: held.__ior__({"junk": "junk"})
        yield partial(methodcaller("clear"), answer)
    elif isinstance(answer, tuple):
        yield partial(_put, held, 0)


def _put(held: Any, key: object) -> None:
    held.__setitem__(key, "junk")


def _way_down(array: np.ndarray) -> list[Any]:
    """The array, and whatever it is a view of."""
    way: list[Any] = [array]
    while len(way) < DEEPEST:
        below = way[-1].base if isinstance(way[-1], np.ndarray) else getattr(way[-1], "obj", None)
        if below is None:
            break
        way.append(below)
    return way


def _spoil_array(array: Any) -> int:
    attempts = list(_on_buffer(array) if not isinstance(array, np.ndarray) else _on_array(array))
    for attempt in attempts:
        with suppress(Exception):
            attempt()
    return len(attempts)


def _on_buffer(buffer: Any) -> Iterator[Callable[[], object]]:
    yield lambda: buffer.__setitem__(0, 7)
    yield lambda: memoryview(buffer).cast("B").__setitem__(0, 7)
    yield lambda: np.frombuffer(buffer, np.uint8).__setitem__(slice(None), 7)


def _unlock(view: Callable[[], Any]) -> None:
    view().setflags(write=True)


def _fill(view: Callable[[], Any], junk: object) -> None:
    view().__setitem__((Ellipsis,), junk)


def _on_array(array: np.ndarray) -> Iterator[Callable[[], object]]:
    junk = JUNK.get(array.dtype.kind, 7)
    yield lambda: array.setflags(write=True)
    yield lambda: setattr(array.flags, "writeable", True)
    views: tuple[Callable[[], Any], ...] = (
        lambda: array, lambda: array[:], array.view, lambda: array.view(np.uint8),
        array.ravel, lambda: array.T, lambda: np.asarray(array), lambda: array.reshape(-1),
        lambda: np.lib.stride_tricks.as_strided(array, writeable=True), lambda: array.real,
    )  # fmt: skip
    for view in views:
        yield partial(_unlock, view)
        yield partial(_fill, view, junk)
    yield lambda: array.fill(junk)
    yield lambda: np.put(array, range(array.size), junk)
    yield lambda: np.copyto(array, junk)
    yield lambda: np.place(array, np.ones(array.shape, np.bool_), [junk])
    yield lambda: np.putmask(array, np.ones(array.shape, np.bool_), junk)
    yield lambda: np.put_along_axis(array, np.zeros(array.shape, np.intp), junk, axis=0)
    yield lambda: np.add(array, 1, out=array)
    yield lambda: np.negative(array, out=array)
    yield lambda: np.cumsum(array, out=array)
    yield lambda: np.take(array[::-1], range(len(array)), out=array)
    yield lambda: np.add.at(array, 0, 1)
    yield lambda: array.__iadd__(1)
    yield array[::-1].sort
    yield lambda: array.partition(0)
    yield lambda: array.byteswap(inplace=True)
    yield lambda: np.random.default_rng(1).shuffle(array)
    if junk != "junk":  # bytes of pointers are not to be written
        yield lambda: memoryview(array).cast("B").__setitem__(0, 7)  # type: ignore[arg-type]
    # the values may be safe where the array that holds them is not
    yield lambda: array.resize(array.size + 3, refcheck=False)
    yield lambda: setattr(array, "shape", (*array.shape[::-1], 1))
    yield lambda: setattr(array, "strides", (0,) * array.ndim)
    yield lambda: setattr(array, "dtype", np.uint8)
