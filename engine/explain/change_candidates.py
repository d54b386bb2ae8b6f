"""Lists the changes of a search that may bring a lost memory into the answer (feature P8)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from speckit_memory.engine.answers.request import MAX_LIMIT, RecordedRequest
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.answers.resume import asks_for_handover
from speckit_memory.engine.answers.why_not import Absence, ChannelRank
from speckit_memory.engine.explain.caller import ANY_DOOR, CallerCapabilities
from speckit_memory.engine.explain.changes import Kind, QueryEdit
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.pipeline.configuration.accepted_values import Plain, ScalarValue, leaves
from speckit_memory.pipeline.configuration.binding import BoundParameters, of_role
from speckit_memory.pipeline.configuration.builder import CheckedPipeline
from speckit_memory.pipeline.model.trace import DEADLINE
from speckit_memory.pipeline.roles.contracts import Role

DIGITS = 2
DECADES = 3
"""Number of powers of ten below the larger end that are listed before 0."""


def typed_values(start: float, end: float, *, whole: bool) -> list[float]:
    """Values from near `start` to `end`, by distance from `start`, which is excluded. Both are finite.

    `end` is included regardless of its digits. With `whole`, only whole numbers.
    """
    low, high = min(start, end), max(start, end)
    # A set: the same number may come from both ends; 0 and the end are always among the values.
    found = {sign * size for sign in (-1, 1) for size in _magnitudes(max(abs(low), abs(high)))} | {0.0, end}
    inside = (value for value in found if low <= value <= high and value != start)
    values = {int(value) for value in inside if value == int(value)} if whole else set(inside)
    return sorted(values, key=lambda value: abs(value - start))


def _magnitudes(largest: float) -> list[float]:
    """Numbers of two significant digits up to the power of ten above `largest`."""
    if not largest:
        return []
    top = math.floor(math.log10(largest))
    powers = range(top - DECADES, top + 1)
    # parsed from text, so that 0.57 is the float nearest to 0.57
    return [float(f"{digits}e{power - DIGITS + 1}") for power in powers for digits in range(10, 100)]


FARTHEST = 100.0
"""A number without a bound is changed by this factor at most."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing that may be changed, with all values to try.

    Each of the `ways` leads away from the present value, the nearest value first; a value that works is expected to
    work farther away too. `first` is a number from which on it probably works, None if unknown.
    """

    name: str
    ways: tuple[tuple[QueryEdit, ...], ...]
    first: float | None = None


def candidates(
    lost: Absence,
    checked: CheckedPipeline,
    asked: RecordedRequest,
    result: SearchResult,
    memory: MemoryRecord,
    seen: Sequence[ChannelRank],
    door: CallerCapabilities = ANY_DOOR,
) -> Iterator[Candidate]:
    """Lists the changes that may help, the most promising first.

    Args:
        lost: Where the memory was lost.
        checked: The pipeline that answered; without steps if its values cannot be set.
        asked: The recorded question.
        result: The answer.
        memory: The lost memory.
        seen: The memory's rank in each channel.
        door: What the caller of the search can change.
    """
    places = {entry.id: place for place, entry in enumerate(checked.bound, start=1)}
    if lost.where != "limit":
        yield from _wishes(asked, checked)
    yield from _of_question(lost, asked, checked, result, memory, door)
    silent = {record.step for record in result.outcome.trace.steps if record.stage == "candidates" and not record.n_out}
    if lost.where == "scope" and not result.outcome.query.wanted.folders:
        return  # the scope was set by the question, not by a step
    values = [list(_of_step(entry, places[entry.id], seen, silent)) for entry in _in_order(lost, checked.bound)]
    hinted = [candidate for candidate in chain(*values) if candidate.first is not None]
    likely = [*hinted, *(values[0] if lost.where == "step" and values else ())]
    yield from likely
    switches = (*_flags(checked, places), *_removals(lost, checked.bound, places))
    if lost.where != "limit":  # one search each, and often the only change that helps; last if only the rank is low
        yield from switches
    yield from (candidate for candidate in chain(*values) if candidate not in likely)
    if lost.where == "limit":
        yield from switches


def _wishes(asked: RecordedRequest, checked: CheckedPipeline) -> Iterator[Candidate]:
    """Dropping single per-search options. The handover preset ignores them."""
    for name in asked.question.adjust.named if checked.bound else ():
        yield _single("wish", name, getattr(asked.question.adjust, name), None, 0)


def _of_question(
    lost: Absence,
    asked: RecordedRequest,
    checked: CheckedPipeline,
    result: SearchResult,
    memory: MemoryRecord,
    door: CallerCapabilities,
) -> Iterator[Candidate]:
    question = asked.question
    if lost.where == "limit":
        yield _number("question", "limit", question.limit, (question.limit, MAX_LIMIT), 0, True, lost.rank)
        yield from _wishes(asked, checked)
    if any(part.part == DEADLINE for part in result.notes.degraded):
        yield _single("question", "deadline_ms", asked.allowed_ms, 0, 0)
    if lost.where == "scope":
        if question.folder:
            yield _single("question", "folder", question.folder, common_folder(question.folder, memory.folder), 0)
        for name in ("tier", "context_type"):
            if getattr(question, name):
                yield _single("question", name, getattr(question, name), "", 0)
        if question.concepts and question.text.strip():
            yield _single("question", "concepts", ", ".join(question.concepts), None, 0)
    if lost.where == "step" and question.anchors:
        yield _single("question", "anchors", ", ".join(question.anchors), None, 0)
    if question.token_usage is not None:
        yield _single("question", "token_usage", question.token_usage, None, 0)
    if not asks_for_handover(result.outcome.query):
        ways = tuple(
            (QueryEdit("question", "mode", question.mode, mode, 0),) for mode in door.modes if mode != question.mode
        )
        yield Candidate("mode", ways)


def common_folder(one: str, other: str) -> str:
    """The deepest folder that contains both, "" for the whole workspace."""
    # Compared by whole components, so that "docs/a" and "docs/ab" share "docs" only.
    parts = zip(one.split("/"), other.split("/"), strict=False)
    shared = []
    for left, right in parts:
        if left != right:
            break
        shared.append(left)
    return "/".join(shared)


def _in_order(lost: Absence, bound: Iterable[BoundParameters]) -> list[BoundParameters]:
    """The steps whose values may matter, the most promising first."""
    by_slot: dict[str, list[BoundParameters]] = {}
    for entry in bound:
        by_slot.setdefault(entry.step.slot, []).append(entry)
    slots = {
        "scope": ("understand",),
        "candidates": ("channels", "recover", "understand"),
        "limit": ("fusion", "rerank", "channels", "understand"),
        "step": ("fusion", "rerank", "channels", "understand"),
    }[lost.where]
    entries = list(chain.from_iterable(by_slot.get(slot, ()) for slot in slots))
    if lost.where != "step":
        return entries
    culprit = [entry for entry in bound if entry.id == lost.step]
    return culprit + [entry for entry in entries if entry.id != lost.step]


def _removable(lost: Absence, bound: Sequence[BoundParameters]) -> list[BoundParameters]:
    """The steps whose removal may keep the memory; the fuser is required."""
    slots = {"scope": ("understand",), "candidates": ("understand",)}.get(lost.where, ("fusion", "rerank", "channels"))
    fusers = of_role(Role.FUSER, bound)
    entries = [entry for entry in bound if entry.step.slot in slots and entry not in fusers and entry.id != lost.step]
    return [entry for entry in bound if entry.id == lost.step] + entries


def _flags(checked: CheckedPipeline, places: dict[str, int]) -> Iterator[Candidate]:
    for name, flag in checked.effective.flags.items():
        if flag.state != "permanent" and (place := _place_of_flag(name, checked, places)):
            yield _single("flag", name, flag.on, not flag.on, place)


def _removals(lost: Absence, bound: Sequence[BoundParameters], places: dict[str, int]) -> Iterator[Candidate]:
    for entry in _removable(lost, bound):
        yield _single("step", entry.id, True, None, places[entry.id])


def _of_step(entry: BoundParameters, place: int, seen: Sequence[ChannelRank], silent: set[str]) -> Iterator[Candidate]:
    assert entry.params is not None  # the pipeline has answered
    # Channels that found the memory, with its rank there; a rank of 0 means no hit.
    ranks = {sighting.channel: sighting.rank for sighting in seen if sighting.rank}
    found = list(leaves(entry.params))
    if entry.step.slot == "fusion":
        # weights of channels that found the memory come first; those of channels without hits have no effect
        heard = (leaf for leaf in found if leaf.path[-1] not in silent)
        found = sorted(heard, key=lambda leaf: leaf.path[-1] not in ranks)
    for leaf in found:
        # A channel finds the memory once its limit reaches the rank there.
        first = ranks.get(entry.id) if leaf.path == ("limit",) and entry.step.slot == "channels" else None
        candidate = _of_leaf(".".join((entry.id, *leaf.path)), leaf, place, first)
        if candidate is not None:
            yield candidate


def _of_leaf(name: str, leaf: ScalarValue, place: int, first: int | None) -> Candidate | None:
    words: list[str | bool] = []
    for form in leaf.forms:
        kind, value = form.get("type"), leaf.value
        if kind in ("number", "integer") and not isinstance(value, bool | str | None):
            bounds = _bounds(form, value)
            beyond = (form.get("exclusiveMinimum"), form.get("exclusiveMaximum"))
            return _number("value", name, value, bounds, place, kind == "integer", first, beyond)
        if kind == "boolean" and isinstance(value, bool):
            words.append(not value)
        words += [word for word in form.get("enum", ()) if isinstance(word, str) and word != value]
    ways = tuple((QueryEdit("value", name, leaf.value, word, place),) for word in words)
    return Candidate(name, ways) if ways else None


def _bounds(form: dict[str, float], value: float) -> tuple[float, float]:
    """The least and the greatest number to try; exclusive bounds are filtered out later."""
    low, high = form.get("minimum", form.get("exclusiveMinimum")), form.get("maximum", form.get("exclusiveMaximum"))
    # A number without bounds: value / 100 to value * 100, in this order for either sign.
    least = low if low is not None else min(value / FARTHEST, value * FARTHEST)
    most = high if high is not None else max(value / FARTHEST, value * FARTHEST, least)
    return least, most


def _number(
    kind: Kind,
    name: str,
    before: float,
    bounds: tuple[float, float],
    place: int,
    whole: bool,
    first: float | None,
    beyond: Sequence[float | None] = (),
) -> Candidate:
    # two ways from the present value: up to the upper bound, and down to the lower one
    ways = []
    for end in reversed(bounds):
        values = (value for value in typed_values(before, end, whole=whole) if value not in beyond)
        ways.append(tuple(QueryEdit(kind, name, before, value, place) for value in values))
    return Candidate(name, tuple(filter(None, ways)), first)


def _single(kind: Kind, name: str, before: Plain, after: Plain, place: int) -> Candidate:
    return Candidate(name, ((QueryEdit(kind, name, before, after, place),),))


def _place_of_flag(name: str, checked: CheckedPipeline, places: dict[str, int]) -> int:
    """The place of the first step that a flag decides on, 0 if it decides on no step of this pipeline."""
    # A flag may switch on a step that replaces another; it is placed where that one is, or at the end.
    effective = checked.effective
    waiting = [step for step in (*effective.steps(), *effective.inactive) if name in step.flags]
    known = [places.get(step.id) or places.get(step.replaces) or len(places) for step in waiting]
    return min(known, default=0)
