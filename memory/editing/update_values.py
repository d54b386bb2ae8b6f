"""Checks the values that a call sets in a document, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence

from speckit_memory.errors import Problem, SpeckitError, nearest
from speckit_memory.memory.editing.front_matter_edit import Value, trigger_phrases
from speckit_memory.memory.parsing.encoding import clean
from speckit_memory.memory.store.records import Tier

LONGEST_TITLE = 500
"""Maximum characters of a title (the specification's bound)."""


def check_values(
    title: str | None, triggers: Sequence[str] | None, tier: str | None, weight: float | None, *, empty: bool = False
) -> dict[str, Value]:
    """The values to set, by the names of `front_matter_edit.KEYS`.

    Args:
        title: New title; this and the other values are None if not given.
        triggers: New trigger phrases.
        tier: New importance tier.
        weight: New importance weight in [0, 1].
        empty: Whether it is valid to give no value.

    Raises:
        SpeckitError: All problems together: E030 for invalid values, E032 for values out of range, E031 for no value.
    """
    problems: list[Problem] = []
    values: dict[str, Value] = {}
    try:
        if title is not None:
            values["title"] = _title(title)
    except SpeckitError as error:
        problems += error.problems
    try:
        if triggers is not None:
            values["triggers"] = trigger_phrases(triggers)
    except SpeckitError as error:
        problems += error.problems
    if tier is not None:
        if tier not in set(map(str, Tier)):
            problems += SpeckitError("E030", f"'{tier}' is not an importance tier", hint=nearest(tier, Tier)).problems
        values["tier"] = tier
    if weight is not None:
        if not 0 <= weight <= 1:
            problems += SpeckitError("E032", f"the importance weight is {weight}; it must be from 0 to 1").problems
        values["importance_weight"] = float(weight)
    if problems:
        raise SpeckitError.of(problems)
    if not values and not empty:
        message = "nothing to change: give a title, trigger phrases, a tier or a weight"
        raise SpeckitError("E031", message)
    return values


def _title(title: str) -> str:
    text = " ".join(clean(title).split())
    if not text:
        raise SpeckitError("E030", "the title is empty")
    if len(text) > LONGEST_TITLE:
        raise SpeckitError("E032", f"the title has {len(text)} characters; at most {LONGEST_TITLE} are allowed")
    return text
