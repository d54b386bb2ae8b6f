"""Checks, field by field, of a plan that an understanding or recovery step returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, get_args

from speckit_memory.pipeline.model.columns import Complexity, Confidence, Mode, Order, Plan, Query, Respelling
from speckit_memory.pipeline.model.describing import displayable, name_of
from speckit_memory.pipeline.model.errors import ContractError, InvalidComponentOutput
from speckit_memory.pipeline.model.field_checks import (
    LARGEST,
    absent,
    flag,
    mapping,
    number,
    row_of,
    text,
    texts,
    whole_number,
)
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


def _limits(found: Any) -> None:
    for name, limit in mapping(found, "limits", MOST_NAMES).items():
        text(name, "the name of a limit")
        whole_number(limit, f"the limit of '{displayable(name, 80)}'", 1, MOST_COUNTED)


def _respelling(found: Any) -> None:
    if not isinstance(found, Respelling):
        raise InvalidComponentOutput(f"returned {name_of(found)} as one of the spellings; accepted: Respelling")
    if not found.word:
        raise InvalidComponentOutput("returned a spelling of no word")
    for value in (found.word, found.term, found.reading):
        text(value, "a spelling", MOST_SPELT)
    for name, weight in mapping(found.instead, "the terms of a spelling", MOST_RESPELT).items():
        text(name, "a term of a spelling", MOST_SPELT)
        number(weight, "the weight of a spelling", 0.0, 1.0)
    if not found.instead or not all(found.instead.values()):
        raise InvalidComponentOutput("returned a spelling without terms of a weight above 0")


def _span(found: Any) -> None:
    row_of(found, lambda moment: number(moment, "a moment", -LARGEST, LARGEST), "moments of a span", 2)
    if len(found) != 2:
        raise InvalidComponentOutput(
            f"returned {len(found)} moments as one of the times; accepted: two, from the first to the last"
        )


def _variants(found: Any) -> None:
    for variant in texts(found, "variants", MOST_VARIANTS)[1:]:
        text(variant, "a variant of the query", MOST_SEARCHED)


def _word(name: str, accepted: tuple[str, ...]) -> Callable[[Any], None]:
    """A check that accepts one of a few words."""

    def check(found: Any) -> None:
        if text(found, name) not in accepted:
            raise InvalidComponentOutput(
                f"planned the {name} '{displayable(found, 80)}'; accepted: {', '.join(accepted)}"
            )

    return check


def _or_none(check: Callable[[Any], object]) -> Callable[[Any], object]:
    return lambda found: None if found is None else check(found)


_CHECKS: dict[str, Callable[[Any], object]] = {
    "intent": lambda found: text(found, "intent", 200),
    "intent_confidence": lambda found: number(found, "intent_confidence", 0.0, 1.0),
    "complexity": _word("complexity", get_args(Complexity)),
    "complexity_confidence": _word("complexity_confidence", get_args(Confidence)),
    "connected": _or_none(lambda found: whole_number(found, "connected", 0, MOST_COUNTED)),
    "graph_gap": lambda found: flag(found, "graph_gap"),
    "channels": _or_none(lambda found: texts(found, "channels", MOST_NAMES)),
    "limits": _limits,
    "variants": _variants,
    "reasons": lambda found: texts(found, "reasons", MOST_REASONS),
    "mode": _or_none(_word("mode", get_args(Mode))),
    "importance_boost": lambda found: number(found, "importance_boost", -10.0, 10.0),
    "folders": lambda found: texts(found, "folders", MOST_NAMES),
    "respelt": lambda found: row_of(found, _respelling, "spellings", MOST_RESPELT),
    "min_similarity": _or_none(lambda found: number(found, "min_similarity", -1.0, 1.0)),
    "limit_factor": lambda found: number(found, "the factor", 1.0, 1e6),
    "times": lambda found: row_of(found, _span, "times", MOST_NAMES),
    "order": _word("order", get_args(Order)),
    "topic": _or_none(lambda found: texts(found, "topic", MOST_NAMES)),
    "counted_from": _or_none(lambda found: number(found, "counted_from", -LARGEST, LARGEST)),
}
"""The check of each field that a step may change."""
_FIELDS = tuple(_CHECKS)
_VALUES = attrgetter(*_FIELDS)
_OWN = attrgetter(*(each.name for each in fields(Plan) if each.name not in _CHECKS))


def check_plan(answer: object, query: Query, step: str) -> Plan | Unavailable:
    """The plan with the fields that a step may change. Raises ContractError unless they are valid.

    The first variant must be the query itself. Most steps change few fields of a plan: only these are checked.
    """
    try:
        if none := absent(answer, Plan):
            return none
        assert isinstance(answer, Plan)
        before = query.plan
        changed: dict[str, Any] = {}
        for name, found, known in zip(_FIELDS, _VALUES(answer), _VALUES(before), strict=True):
            if found is not known:
                _CHECKS[name](found)
                if found != known:
                    changed[name] = found
        if not changed:
            return before
        if "variants" in changed and answer.variants[:1] != (query.text,):
            raise InvalidComponentOutput("must keep the query itself as the first variant")
    except InvalidComponentOutput as unfit:
        raise ContractError(step, unfit.violation) from None
    # the other fields are the frame's own
    return answer if type(answer) is Plan and _OWN(answer) == _OWN(before) else replace(before, **changed)


def check_asked(plan: Plan | Unavailable, channels: Sequence[str], step: str) -> Plan | Unavailable:
    """Raises ContractError unless the plan includes at least one declared channel."""
    if isinstance(plan, Plan) and plan.channels is not None and not set(plan.channels) & set(channels):
        found = ", ".join(plan.channels) or "no channel"
        raise ContractError(step, f"planned to use {found}; accepted: at least one of {', '.join(channels)}")
    return plan
