"""What one search wants otherwise than the pipeline says: boosts, decay, reranking, states (feature T2)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from speckit_memory.errors import Problem, SpeckitError, nearest
from speckit_memory.memory.lifecycle.states import STATES
from speckit_memory.pipeline.effective import Effective
from speckit_memory.pipeline.variants import with_flag, with_values, without

FLAGS = {
    "session": "SPECKIT_SESSION_BOOST",
    "causal": "SPECKIT_CAUSAL_BOOST",
    "contiguity": "SPECKIT_TEMPORAL_CONTIGUITY",
}
"""The flag that a step waits for, by the component it is of."""
RERANKERS = ("maxsim", "cross_encoder")
AGEING = ("temporal", "recency")
LIMITS = "{HOT: 5, WARM: 10, COLD: 3, DORMANT: 2, ARCHIVED: 1}"
"""Rows of each state (feature A1)."""
STATE_NAMES = tuple(str(state) for state in STATES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """What one search wants; None, or an empty text, leaves it to the pipeline.

    `session_boost`, `causal_boost` and `contiguity`: whether the signals of these names take part; `decay`: whether
    the age and the retrievability of memories count; `rerank`: whether late interaction and cross-encoders do, and
    `length_penalty` whether these put short and verbose passages back; `constitutional`: whether the rules of the house
    surface whatever is asked; `state_limits`: so many rows of each state (feature A1); `min_state`: the coldest state
    that is shown.
    """

    session_boost: bool | None = None
    causal_boost: bool | None = None
    contiguity: bool | None = None
    decay: bool | None = None
    rerank: bool | None = None
    length_penalty: bool | None = None
    constitutional: bool | None = None
    state_limits: bool | None = None
    min_state: str = ""

    def __bool__(self) -> bool:
        """Whether anything is wanted."""
        return self != _NOTHING

    def check(self) -> None:
        """Raises E030 for a state that there is not."""
        if self.min_state and self.min_state not in STATE_NAMES:
            near = nearest(self.min_state, STATE_NAMES)
            raise SpeckitError.of([Problem("E030", f"min_state is '{self.min_state}'; {near}")])


_NOTHING = Adjustment()


def adjusted(whole: Effective, wanted: Adjustment) -> tuple[Effective, tuple[str, ...]]:
    """The pipeline as one search wants it, and what of that it has no step for, a sentence each."""
    unmet: list[str] = []
    for use, on in (
        ("session", wanted.session_boost), ("causal", wanted.causal_boost), ("contiguity", wanted.contiguity),
    ):  # fmt: skip
        if on is not None:
            whole = _with_signal(whole, use, unmet) if on else _without(whole, (use,))
    if wanted.decay is False:
        whole = _without(whole, AGEING)
        whole = _set(whole, "composite", decay="false")
    if wanted.rerank is False:
        whole = _without(whole, RERANKERS)
    if wanted.length_penalty is False:
        whole = _set(whole, "cross_encoder", short_factor="1", long_factor="1")
    if wanted.constitutional is False:
        whole = _without(whole, ("constitutional", "constitutional_guarantee"))
        whole = _set(whole, "pin", tiers="[]")
    states = {"limits": LIMITS if wanted.state_limits else "", "min_state": wanted.min_state}
    if any(states.values()):
        if not _of(whole, ("state_filter",)):
            unmet.append(_unmet(whole, "state_filter"))
        whole = _set(whole, "state_filter", **{name: text for name, text in states.items() if text})
    return whole, tuple(unmet)


def _of(whole: Effective, uses: Collection[str]) -> list[str]:
    """The ids of the steps of these components that take part."""
    return [step.id for step in whole.steps() if step.use in uses]


def _with_signal(whole: Effective, use: str, unmet: list[str]) -> Effective:
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


def _unmet(whole: Effective, use: str) -> str:
    return f"the pipeline '{whole.name}' has no step '{use}' to do what was asked for; it answered as it is"
