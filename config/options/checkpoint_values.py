"""Reads the key `checkpoints` of `config.yaml`: how many are kept, and for how long."""

from __future__ import annotations

from speckit_memory.config.options.checkpoint_limits import ACCEPTED_DAYS, ACCEPTED_KEEP, MOST, CheckpointLimits
from speckit_memory.config.options.workspace_values import empty, form, report_unknown
from speckit_memory.config.yaml.reader import MappingEntry, Scalar, YamlMapping
from speckit_memory.errors import Problem

_KEYS = ("keep", "days")


def checkpoints_of(entry: MappingEntry | None, problems: list[Problem]) -> CheckpointLimits:
    """The value of `checkpoints`. Invalid values are added to `problems` and count as absent."""
    shipped = CheckpointLimits()
    if entry is None or empty(entry.value):
        return shipped
    if not isinstance(entry.value, YamlMapping):
        problems.append(form(entry.value, "'checkpoints'", f"a mapping with {', '.join(_KEYS)}"))
        return shipped
    report_unknown(entry.value, _KEYS, "'checkpoints'", problems)
    keep, days = shipped.keep, shipped.days
    for each in entry.value.entries:
        if each.key not in _KEYS or empty(each.value):
            continue
        number = each.value.value if isinstance(each.value, Scalar) else None
        if isinstance(number, bool):
            number = None
        if each.key == "keep" and isinstance(number, int) and 1 <= number <= MOST:
            keep = number
        elif each.key == "days" and isinstance(number, int | float) and 0 < number < 1e6:
            days = float(number)
        else:
            accepted = ACCEPTED_KEEP if each.key == "keep" else ACCEPTED_DAYS
            problems.append(form(each.value, f"'{each.key}'", accepted))
    return CheckpointLimits(keep, days)
