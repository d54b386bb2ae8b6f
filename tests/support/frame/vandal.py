"""Writes into whatever it is handed, by the ways in which code writes by mistake, and says how many it tried."""

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
        attempts, tried = _on_array(answer), 0
    else:
        attempts, tried = _attempts(answer), sum(vandalise(part, depth + 1) for part in _parts(answer))
    for attempt in attempts:
        with suppress(Exception):
            attempt()
        tried += 1
    return tried


def public(thing: object) -> list[str]:
    """The names of an object that are meant for others."""
    return [name for name in dir(thing) if not name.startswith("_")]


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
    held[key] = JUNK.get(held.dtype.kind, 7) if isinstance(held, np.ndarray) else "junk"


def _on_array(array: np.ndarray) -> Iterator[Callable[[], object]]:
    junk = JUNK.get(array.dtype.kind, 7)
    for view in (array, array[:], array.T, array.reshape(-1)):
        yield partial(_put, view, Ellipsis)
    yield lambda: array.fill(junk)
    yield lambda: np.add(array, 1, out=array)
    yield lambda: np.add.at(array, 0, 1)
    yield lambda: array.__iadd__(1)
    yield array[::-1].sort
    yield lambda: np.random.default_rng(1).shuffle(array)
