"""What one search wants otherwise than the pipeline says: boosts, decay, reranking, states (feature T2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from speckit_memory.config.yaml.reader import plain
from speckit_memory.errors import Problem, SpeckitError, nearest
from speckit_memory.errors.echo import abridged
from speckit_memory.memory.lifecycle.states import STATES
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.variants import with_flag, with_values, without

FLAGS = {
    "session": "SPECKIT_SESSION_BOOST",
    "causal": "SPECKIT_CAUSAL_BOOST",
    "contiguity": "SPECKIT_TEMPORAL_CONTIGUITY",
    "fitting": "SPECKIT_ONLY_FITTING",
}
"""The flag that a step waits for, by the component it is of."""
RERANKERS = ("maxsim", "cross_encoder")
AGEING = ("temporal", "recency", "novelty")
"""Signals that tell nothing but age."""
AGEING_IN_PART = ("composite", "folder_score")
"""Signals that age is a part of, which counts as that of what was changed and used just now without it."""
LIMITS = "{HOT: 5, WARM: 10, COLD: 3, DORMANT: 2, ARCHIVED: 1}"
"""Rows of each state (feature A1)."""
STATE_NAMES = tuple(str(state) for state in STATES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """What one search wants; None, or an empty text, leaves it to the pipeline.

    `session_boost`, `causal_boost` and `contiguity`: whether the signals of these names take part; `decay`: whether
    signals count how long ago a memory was made, changed or used; `rerank`: whether late interaction and cross-encoders
    take part, and `length_penalty` whether these put short and verbose passages back; `constitutional`: whether the
    rules of the house surface whatever is asked; `state_limits`: so many rows of each state (feature A1), or as many as
    there are; `min_state`: the coldest state that is shown; `only_fitting`: whether rows that do not fit are left out.
    """

    session_boost: bool | None = None
    causal_boost: bool | None = None
    contiguity: bool | None = None
    decay: bool | None = None
    rerank: bool | None = None
    length_penalty: bool | None = None
    constitutional: bool | None = None
    state_limits: bool | None = None
    only_fitting: bool | None = None
    min_state: str = ""

    def __bool__(self) -> bool:
        """Whether anything is wanted."""
        return self != NOTHING

    @property
    def named(self) -> tuple[str, ...]:
        """What is wanted, by the names of Python."""
        return tuple(one.name for one in fields(self) if getattr(self, one.name) not in (None, ""))

    def without(self, name: str) -> Adjustment:
        """The same, with one of these left to the pipeline."""
        left: dict[str, Any] = {name: "" if name == "min_state" else None}
        return replace(self, **left)

    def check(self) -> None:
        """Raises E030 for what is of another type than said, and for a state that there is not."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        if not isinstance(given.pop("min_state"), str):
            raise _misfit("min_state", self.min_state, "a text")
        for name, value in given.items():
            if value is not None and not isinstance(value, bool):
                raise _misfit(name, value, "True, False or None")
        if self.min_state and self.min_state not in STATE_NAMES:
            near = nearest(self.min_state, STATE_NAMES)
            raise SpeckitError.of([Problem("E030", f"min_state is '{self.min_state}'; {near}")])


NOTHING = Adjustment()
"""All is left to the pipeline."""


def wanted_of(given: object) -> Adjustment:
    """What a search wants, None being nothing. Raises E030 for what is no adjustment."""
    if given is None:
        return NOTHING
    if not isinstance(given, Adjustment):
        raise _misfit("adjust", given, "an Adjustment")
    return given


def _misfit(name: str, value: object, accepted: str) -> SpeckitError:
    return SpeckitError("E030", f"{name} is {abridged(repr(value), 60)} ({type(value).__name__}); accepted: {accepted}")


def adjusted(whole: Effective, wanted: Adjustment) -> tuple[Effective, tuple[str, ...]]:
    """The pipeline as one search wants it, and what of that it has no step for, a sentence each.

    What is not wanted needs no step: a pipeline that has none leaves it out anyway.
    """
    unmet: list[str] = []
    for use, on in (
        ("session", wanted.session_boost),
        ("causal", wanted.causal_boost),
        ("contiguity", wanted.contiguity),
        ("fitting", wanted.only_fitting),
    ):
        if on is not None:
            whole = _with_flagged(whole, use, unmet) if on else _without(whole, (use,))
    whole = _ageing(whole, wanted.decay, unmet)
    whole = _reranked(whole, wanted, unmet)
    whole = _constitutional(whole, wanted.constitutional, unmet)
    return _of_states(whole, wanted, unmet), tuple(unmet)


def _ageing(whole: Effective, on: bool | None, unmet: list[str]) -> Effective:
    if on:
        _require(whole, (*AGEING, *AGEING_IN_PART), unmet)
        return _set(whole, "composite", decay="true")
    if on is None:
        return whole
    whole = _without(whole, AGEING)
    whole = _set(whole, "folder_score", fade="0")
    for step in whole.slots["fusion"]:
        weights = step.params.get("weights")
        if weights and plain(weights.value) == "by_intent":
            whole = with_values(whole, {f"{step.id}.weights": "by_intent_ageless"})
    return _set(whole, "composite", decay="false")


def _reranked(whole: Effective, wanted: Adjustment, unmet: list[str]) -> Effective:
    if wanted.rerank:
        _require(whole, RERANKERS, unmet)
    elif wanted.rerank is False:
        whole = _without(whole, RERANKERS)
    if wanted.length_penalty:
        _require(whole, ("cross_encoder",), unmet)
    elif wanted.length_penalty is False:
        whole = _set(whole, "cross_encoder", short_factor="1", long_factor="1")
    return whole


def _constitutional(whole: Effective, on: bool | None, unmet: list[str]) -> Effective:
    if on:
        _require(whole, ("constitutional",), unmet)
    elif on is False:
        whole = _without(whole, ("constitutional", "constitutional_guarantee"))
        whole = _set(whole, "pin", tiers="[]")
    return whole


def _of_states(whole: Effective, wanted: Adjustment, unmet: list[str]) -> Effective:
    if wanted.state_limits or wanted.min_state:
        _require(whole, ("state_filter",), unmet)
    if wanted.state_limits:
        whole = _set(whole, "state_filter", limits=LIMITS)
    elif wanted.state_limits is False:
        # a mapping is laid upon the one that is there: nothing takes the place of that before
        whole = _set(whole, "state_filter", limits="0")
        whole = _set(whole, "state_filter", limits="{}")
    return _set(whole, "state_filter", min_state=wanted.min_state) if wanted.min_state else whole


def _of(whole: Effective, uses: Collection[str]) -> list[str]:
    """The ids of the steps of these components that take part."""
    return [step.id for step in whole.steps() if step.use in uses]


def _with_flagged(whole: Effective, use: str, unmet: list[str]) -> Effective:
    if _of(whole, (use,)):
        return whole
    waiting = any(step.use == use and FLAGS[use] in step.flags for step in whole.inactive)
    if not waiting:
        unmet.append(_unmet(whole, use))
    return with_flag(whole, FLAGS[use]) if waiting else whole


def _without(whole: Effective, uses: Collection[str]) -> Effective:
    for step in _of(whole, uses):
        whole = without(whole, step, forgotten=True)
    return whole


def _set(whole: Effective, use: str, **values: str) -> Effective:
    return with_values(whole, {f"{step}.{name}": text for step in _of(whole, (use,)) for name, text in values.items()})


def _require(whole: Effective, uses: Sequence[str], unmet: list[str]) -> None:
    if not _of(whole, uses):
        unmet.append(_unmet(whole, *uses))


def _unmet(whole: Effective, *uses: str) -> str:
    *most, last = [f"'{use}'" for use in uses]
    steps = f"{', '.join(most)} or {last}" if most else last
    return f"the pipeline '{whole.name}' has no step {steps} to do what was asked for; it answered as it is"
