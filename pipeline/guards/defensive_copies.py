"""Copies of the frame's objects that components are given, checked for modification after every call.

Frozen dataclasses only prevent mistakes, and a component may keep a reference to its arguments. So the frame works on
objects that no component ever holds, and passes copies of them: their columns are in separate bytes, their mappings are
new dicts. After every call the copies are compared with their original state; a step that has modified one is named,
and the next step gets new copies. Unmodified copies are reused, so that few are made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter, is_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.model.columns import Candidates, Plan, Pool, Query, Respelling, StepScore
from speckit_memory.pipeline.ports import Filter

_VALUES: dict[type[Any], Callable[[Any], tuple[Any, ...]]] = {
    kind: attrgetter(*(field.name for field in fields(kind)))
    for kind in (Query, Filter, Plan, Respelling, Pool, Candidates, StepScore)
}
"""The fields of each kind of object that is copied, in the order of its constructor."""


class _Display:
    """A copy of one of the frame's objects, with a record of its original state.

    `_objects` are the dataclass instances of the copy, each with its class and its fields; `_entries` its dicts, each
    with its keys and values; `_memories` the bytes behind its columns, each with a copy. Fields are compared by
    identity, since a component could fake equality. numpy cannot make bytes writable, but other means can.
    """

    __slots__ = ("_entries", "_memories", "_objects", "own", "parts", "shown")

    def __init__(self, own: Any) -> None:
        self.own = own
        self.parts: dict[int, tuple[Any, Any]] = {}
        """The candidates and scores of a pool with their copies, by id; holding the original keeps its id unique."""
        self.shown: Any = None
        self._objects: list[tuple[Any, type[Any], tuple[Any, ...]]] = []
        self._entries: list[tuple[dict[Any, Any], tuple[Any, ...]]] = []
        self._memories: list[tuple[bytes, bytes]] = []

    def touched(self) -> bool:
        """Whether any part of the copy has been modified."""
        try:
            # `is`, not ==: comparing could run `__eq__` of a foreign class.
            for shown, kind, values in self._objects:
                if type(shown) is not kind or not all(map(is_, _VALUES[kind](shown), values)):
                    return True
        except AttributeError:  # a field was deleted
            return True
        for entries, values in self._entries:
            # Keys first, then values, in insertion order: a reordered dict counts as modified.
            now = (*entries, *entries.values())
            if len(now) != len(values) or not all(map(is_, now, values)):
                return True
        for memory, kept in self._memories:  # noqa: SIM110 - a generator takes longer than the comparison
            if memory != kept:
                return True
        return False

    def made(self, kind: type[Any], *values: Any) -> Any:
        """Creates an instance for the copy."""
        instance = kind(*values)
        self._objects.append((instance, kind, values))
        return instance

    def mapping(self, own: Any) -> dict[Any, Any]:
        """Creates a dict for the copy."""
        entries = dict(own)
        self._entries.append((entries, (*entries, *entries.values())))
        return entries

    def watch_too(self, other: _Display) -> None:
        """Also watches the parts of another copy, which this one reuses."""
        self._objects += other._objects
        self._memories += other._memories

    def columns(self, *columns: NDArray[Any]) -> list[NDArray[Any]]:
        """Copies columns into one bytes object; columns of wider numbers must come first."""
        # A bytes object is immutable, so arrays over it are read-only and numpy refuses to set `writeable`.
        memory = b"".join([np.ascontiguousarray(column).data for column in columns])
        # A second copy of the bytes; `bytes(memory)` would return the same object.
        self._memories.append((memory, bytes(memoryview(memory))))
        copies, at = [], 0
        for column in columns:
            # Offsets stay aligned because wider numbers come first.
            copies.append(np.ndarray(column.shape, column.dtype, memory, at))
            at += column.nbytes
        return copies


class DefensiveCopies:
    """The copies that the steps of one run are given."""

    def __init__(self) -> None:
        self._question: _Display | None = None
        self._rows: _Display | None = None

    def query(self, own: Query) -> Query:
        """A copy of a query with its filter and its plan."""
        if self._question is None or self._question.own is not own:
            self._question = _query(own)
        shown: Query = self._question.shown
        return shown

    def candidates(self, own: Candidates) -> Candidates:
        """A copy of the candidates."""
        self._rows = _candidates(own)
        shown: Candidates = self._rows.shown
        return shown

    def pool(self, own: Pool) -> Pool:
        """A copy of a pool with its candidates and all scores."""
        if self._rows is None or self._rows.own is not own:
            self._rows = _pool(own, self._rows)
        shown: Pool = self._rows.shown
        return shown

    def put_rows_away(self) -> None:
        """Ends the use of candidates and pools: later steps are given neither."""
        self._rows = None

    def touched(self) -> str:
        """The parts that a component has modified, in words; empty for none. Modified copies are not reused."""
        query = self._question is not None and self._question.touched()
        rows = self._rows is not None and self._rows.touched()
        if query:
            self._question = None
        if rows:
            self.put_rows_away()
        return " and the ".join(["query"] * query + ["rows"] * rows)


def _query(own: Query) -> _Display:
    display, plan = _Display(own), own.plan
    wanted = display.made(Filter, *_VALUES[Filter](own.wanted))
    values = dict(zip(Plan.__slots__, _VALUES[Plan](plan), strict=True))
    values["limits"] = display.mapping(plan.limits)
    values["respelt"] = tuple(
        display.made(Respelling, found.word, found.term, display.mapping(found.instead), found.reading)
        for found in plan.respelt
    )
    shown_plan = display.made(Plan, *values.values())
    values = dict(zip(Query.__slots__, _VALUES[Query](own), strict=True))
    display.shown = display.made(Query, *(values | {"wanted": wanted, "plan": shown_plan}).values())
    return display


def _candidates(own: Candidates) -> _Display:
    display = _Display(own)
    display.shown = display.made(Candidates, *_with_columns(own, display.columns(*_columns(own))))
    return display


def _pool(own: Pool, before: _Display | None) -> _Display:
    """The copy of a pool. A signal adds a score and leaves the rest unchanged, so its copies are reused."""
    display = _Display(own)
    known = before.parts if before else {}
    parts: list[Candidates | StepScore] = [own.candidates, *own.steps]
    new = [part for part in parts if id(part) not in known]
    hits, *columns = display.columns(own.chunk_hits, *(column for part in new for column in _columns(part)))
    at = 0
    for part in new:
        count = len(_columns(part))
        display.parts[id(part)] = part, display.made(type(part), *_with_columns(part, columns[at : at + count]))
        at += count
    if before and len(new) < len(parts):
        display.parts = before.parts | display.parts
        display.watch_too(before)
    candidates, *steps = (display.parts[id(part)][1] for part in parts)
    display.shown = display.made(Pool, candidates, tuple(steps), hits)
    return display


def _columns(own: Candidates | StepScore) -> tuple[NDArray[Any], ...]:
    if isinstance(own, StepScore):
        return own.parts, own.after
    return own.ids, own.parents, own.passages, own.updated_at, own.rest, own.raw, own.rank


def _with_columns(own: Candidates | StepScore, columns: list[NDArray[Any]]) -> tuple[Any, ...]:
    """The values of the copy in the order of its constructor."""
    if isinstance(own, StepScore):
        return own.step, own.kind, own.scale, own.names, *columns, own.formulas
    ids, parents, passages, updated_at, rest, raw, rank = columns
    return ids, parents, passages, updated_at, own.channels, own.variants, own.scales, rest, raw, rank
