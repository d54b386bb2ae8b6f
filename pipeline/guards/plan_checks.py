"""Checks, field by field, of a plan that an understanding or recovery step returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter, is_
from typing import Any, get_args

from speckit_memory.pipeline.model.columns import Complexity, Confidence, Mode, Order, Plan, Query, Respelling
from speckit_memory.pipeline.model.copying import (
    LARGEST,
    absent,
    checked_integer,
    flag,
    number,
    pairs,
    row_of,
    text,
    texts,
    values_of,
)
from speckit_memory.pipeline.model.describing import displayable, name_of
from speckit_memory.pipeline.model.errors import ContractError, InvalidComponentOutput
from speckit_memory.pipeline.ports import Unavailable

MOST_VARIANTS = 16
"""Maximum number of variants: every channel searches every variant."""
MOST_NAMES = 1000
"""Maximum number of channels, limits and folders in a plan."""
MOST_REASONS = 200
MOST_RESPELT = 100
MOST_SPELT = 200
"""Maximum length of a spelling: it may replace each of thousands of words."""
MOST_SEARCHED = 10_000
"""Maximum length of a variant other than the query itself; the query has the same limit."""
MOST_COUNTED = 2**63 - 1


def _limits(found: object) -> dict[str, int]:
    return {
        text(name, "the name of a limit"): checked_integer(limit, "a limit", -MOST_COUNTED, MOST_COUNTED)
        for name, limit in pairs(found, "limits", MOST_NAMES)
    }


def _respelling(found: object) -> Respelling:
    if type(found) is not Respelling:
        raise InvalidComponentOutput(f"returned {name_of(found)} as one of the spellings; accepted: Respelling")
    word, term, instead, reading = values_of(found, Respelling)
    weights = {
        text(name, "a term of a spelling", MOST_SPELT): number(weight, "the weight of a spelling", 0.0, 1.0)
        for name, weight in pairs(instead, "the terms of a spelling", MOST_RESPELT)
    }
    if not weights or not all(weights.values()):
        raise InvalidComponentOutput("returned a spelling without terms of a weight above 0")
    plain, stem, meant = (text(value, "a spelling", MOST_SPELT) for value in (word, term, reading))
    if not plain:
        raise InvalidComponentOutput("returned a spelling of no word")
    return Respelling(plain, stem, weights, meant)


def _memory(found: object) -> int:
    return checked_integer(found, "a memory", 0, MOST_COUNTED)


def _span(found: object) -> tuple[float, float]:
    moments = row_of(found, lambda moment: number(moment, "a moment", -LARGEST, LARGEST), "moments of a span", 2)
    if len(moments) != 2:
        raise InvalidComponentOutput(
            f"returned {len(moments)} moments as one of the times; accepted: two, from the first to the last"
        )
    return moments


def _word(name: str, accepted: tuple[str, ...]) -> Callable[[object], str]:
    """A copier that accepts one of a few words, and returns the frame's own object of it."""

    def copier(found: object) -> str:
        word = text(found, name)
        if word not in accepted:
            raise InvalidComponentOutput(
                f"planned the {name} '{displayable(word, 80)}'; accepted: {', '.join(accepted)}"
            )
        return accepted[accepted.index(word)]

    return copier


def _or_none(copier: Callable[[object], Any]) -> Callable[[object], Any]:
    return lambda found: None if found is None else copier(found)


_COPIERS: dict[str, Callable[[object], Any]] = {
    "intent": lambda found: text(found, "intent", 200),
    "intent_confidence": lambda found: number(found, "intent_confidence", 0.0, 1.0),
    "complexity": _word("complexity", get_args(Complexity)),
    "complexity_confidence": _word("complexity_confidence", get_args(Confidence)),
    "connected": _or_none(lambda found: checked_integer(found, "connected", 0, MOST_COUNTED)),
    "graph_gap": lambda found: flag(found, "graph_gap"),
    "channels": _or_none(lambda found: texts(found, "channels", MOST_NAMES)),
    "limits": _limits,
    "variants": lambda found: texts(found, "variants", MOST_VARIANTS),
    "reasons": lambda found: texts(found, "reasons", MOST_REASONS),
    "mode": _or_none(_word("mode", get_args(Mode))),
    "importance_boost": lambda found: number(found, "importance_boost", -10.0, 10.0),
    "folders": lambda found: texts(found, "folders", MOST_NAMES),
    "respelt": lambda found: row_of(found, _respelling, "spellings", MOST_RESPELT),
    "min_similarity": _or_none(lambda found: number(found, "min_similarity", -1.0, 1.0)),
    "limit_factor": lambda found: number(found, "the factor", 1.0, 1e6),
    "memories": _or_none(lambda found: row_of(found, _memory, "memories", MOST_COUNTED)),
    "times": lambda found: row_of(found, _span, "times", MOST_NAMES),
    "order": _word("order", get_args(Order)),
    "topic": _or_none(lambda found: texts(found, "topic", MOST_NAMES)),
    "counted_from": _or_none(lambda found: number(found, "counted_from", -LARGEST, LARGEST)),
    "warnings": lambda found: texts(found, "warnings", MOST_REASONS),
    "asked_similarity": lambda found: number(found, "asked_similarity", -LARGEST, LARGEST),
    "attempt": lambda found: checked_integer(found, "attempt", 0, MOST_COUNTED),
}
"""The copier of each field."""


def check_plan(answer: object, query: Query, step: str) -> Plan | Unavailable:
    """A copy of the plan. Raises ContractError unless it is valid and its first variant is the query itself."""
    try:
        return _plan(answer, query)
    except InvalidComponentOutput as unfit:
        raise ContractError(step, unfit.violation) from None


def _plan(answer: object, query: Query) -> Plan | Unavailable:
    if none := absent(answer, Plan):
        return none
    before = query.plan
    fields = zip(Plan.__slots__, values_of(answer, Plan), _KNOWN(before), strict=True)
    # Zipped in the order of the slots. A field that is the frame's own object needs no copy and no check.
    plain = {name: known if found is known else _same(_COPIERS[name](found), known) for name, found, known in fields}
    plan = before if all(map(is_, plain.values(), _KNOWN(before))) else Plan(**plain)
    if plan.variants[:1] != (query.text,):
        raise InvalidComponentOutput("must keep the query itself as the first variant")
    if any(len(variant) > MOST_SEARCHED for variant in plan.variants[1:]):
        raise InvalidComponentOutput(
            f"planned variants of more than {MOST_SEARCHED:,} characters; accepted: at most {MOST_SEARCHED:,}"
        )
    if any(limit < 1 for limit in plan.limits.values()):
        raise InvalidComponentOutput(
            f"planned the {displayable(f'limits {dict(plan.limits)}', 200)}; accepted: at least 1"
        )
    return plan


_KNOWN = attrgetter(*Plan.__slots__)


def _same(found: Any, known: Any) -> Any:
    """The frame's own value if the step returns an equal one, since most steps leave most of a plan unchanged."""
    return known if found == known else found


def check_asked(plan: Plan | Unavailable, channels: Sequence[str], step: str) -> Plan | Unavailable:
    """Raises ContractError unless the plan includes at least one declared channel."""
    if isinstance(plan, Plan) and plan.channels is not None and not set(plan.channels) & set(channels):
        found = ", ".join(plan.channels) or "no channel"
        raise ContractError(step, f"planned to use {found}; accepted: at least one of {', '.join(channels)}")
    return plan
