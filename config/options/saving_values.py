"""Reads the key `saving` of `config.yaml`: the rules for saving documents."""

from __future__ import annotations

from typing import Any

from speckit_memory.config.options.saving import (
    PASSAGES,
    PREDICTION_ERROR,
    QUALITY,
    SECRETS,
    SHIPPED_RULES,
    SavingRules,
)
from speckit_memory.config.options.workspace_values import empty, form, report_unknown
from speckit_memory.config.yaml.reader import MappingEntry, Scalar, YamlMapping
from speckit_memory.errors import Problem

_ACCEPTED = {"secrets": SECRETS, "quality": QUALITY, "prediction_error": PREDICTION_ERROR, "passages": PASSAGES}


def saving_of(entry: MappingEntry | None, problems: list[Problem]) -> SavingRules:
    """The value of `saving`. Invalid values are added to `problems` and count as absent."""
    if entry is None or empty(entry.value):
        return SHIPPED_RULES
    if not isinstance(entry.value, YamlMapping):
        problems.append(form(entry.value, "'saving'", f"a mapping with {', '.join(_ACCEPTED)}"))
        return SHIPPED_RULES
    report_unknown(entry.value, tuple(_ACCEPTED), "'saving'", problems)
    chosen: dict[str, Any] = {}
    for each in entry.value.entries:
        accepted = _ACCEPTED.get(each.key)
        if accepted is None or empty(each.value):
            continue
        written = each.value.value if isinstance(each.value, Scalar) else None
        if written in accepted:
            chosen[each.key] = written
        else:
            problems.append(form(each.value, f"'{each.key}'", f"one of {', '.join(accepted)}"))
    return SavingRules(**chosen)
