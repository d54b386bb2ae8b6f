"""Per-search options that override the pipeline: boosts, decay, reranking, states (feature T2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from speckit_memory.config.yaml.reader import plain
from speckit_memory.errors import SpeckitError, refused, wrong_type
from speckit_memory.memory.lifecycle.states import STATES
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.variants import with_flag, with_values, without

FLAGS = {
    "session": "SPECKIT_SESSION_BOOST",
    "causal": "SPECKIT_CAUSAL_BOOST",
    "contiguity": "SPECKIT_TEMPORAL_CONTIGUITY",
    "fitting": "SPECKIT_ONLY_FITTING",
}
"""The flag that enables a step, by the component of the step."""
RERANKERS = ("maxsim", "cross_encoder")
AGEING = ("temporal", "recency", "novelty")
"""Signals that measure age alone."""
AGEING_IN_PART = ("composite", "folder_score")
"""Signals with age as one part; without decay that part is set to the value of a memory used just now."""
LIMITS = "{HOT: 5, WARM: 10, COLD: 3, DORMANT: 2, ARCHIVED: 1}"
"""Maximum number of rows of each state (feature A1)."""
STATE_NAMES = tuple(str(state) for state in STATES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """Per-search options; None, or "" for `min_state`, leaves an option to the pipeline.

    Attributes:
        session_boost: Whether the signal `session` runs.
        causal_boost: Whether the signal `causal` runs.
        contiguity: Whether the signal `contiguity` runs.
        decay: Whether signals count how long ago a memory was made, changed or used.
        rerank: Whether late interaction and cross-encoders run.
        length_penalty: Whether rerankers demote short and verbose passages.
        constitutional: Whether constitutional memories appear for every query.
        state_limits: Whether the number of rows per state is limited (feature A1).
        only_fitting: Whether rows that do not fit the query are left out.
        min_state: The coldest state that is shown.
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
        """Whether any option is set."""
        return self != NOTHING

    @property
    def named(self) -> tuple[str, ...]:
        """The names of the options that are set."""
        return tuple(one.name for one in fields(self) if getattr(self, one.name) not in (None, ""))

    def without(self, name: str) -> SearchOptions:
        """A copy with one option left to the pipeline."""
        left: dict[str, Any] = {name: "" if name == "min_state" else None}
        return replace(self, **left)

    def check(self) -> None:
        """Raises E030 for a value of the wrong type and for an unknown state."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        if not isinstance(given.pop("min_state"), str):
            raise SpeckitError.of([wrong_type("min_state", self.min_state, "a text")])
        for name, value in given.items():
            if value is not None and not isinstance(value, bool):
                raise SpeckitError.of([wrong_type(name, value, "True, False or None")])
        if self.min_state and self.min_state not in STATE_NAMES:
            raise SpeckitError.of([refused("min_state", self.min_state, STATE_NAMES)])


NOTHING = SearchOptions()
"""No option is set."""


def options_of(given: object) -> SearchOptions:
    """The options of a search. Raises E030 for a value that is no `SearchOptions`."""
    if not isinstance(given, SearchOptions):
        raise SpeckitError.of([wrong_type("adjust", given, "SearchOptions")])
    return given


def adjust_pipeline(whole: Effective, wanted: SearchOptions) -> tuple[Effective, tuple[str, ...]]:
    """Applies per-search options to a pipeline.

    Returns the pipeline and one sentence for each option that no step implements. Switching something off needs no
    step.
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


def _reranked(whole: Effective, wanted: SearchOptions, unmet: list[str]) -> Effective:
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


def _of_states(whole: Effective, wanted: SearchOptions, unmet: list[str]) -> Effective:
    if wanted.state_limits or wanted.min_state:
        _require(whole, ("state_filter",), unmet)
    if wanted.state_limits:
        whole = _set(whole, "state_filter", limits=LIMITS)
    elif wanted.state_limits is False:
        # setting a mapping merges it into the existing one, so a scalar replaces that first
        whole = _set(whole, "state_filter", limits="0")
        whole = _set(whole, "state_filter", limits="{}")
    return _set(whole, "state_filter", min_state=wanted.min_state) if wanted.min_state else whole


def _of(whole: Effective, uses: Collection[str]) -> list[str]:
    """The ids of the active steps of these components."""
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
    return f"the pipeline '{whole.name}' has no step {steps} for this option; it answered unchanged"
