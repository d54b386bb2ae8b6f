"""Reads the key `evaluation` of `config.yaml`: the recording of answered queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from speckit_memory.config.options.recording_modes import RECORDED, RecordingOptions
from speckit_memory.config.options.workspace_values import empty, form, report_unknown
from speckit_memory.config.yaml.reader import MappingEntry, Scalar, YamlMapping
from speckit_memory.errors import Problem

MOST_DAYS = 3_650
LEAST_MB, MOST_MB = 1, 10_000

NEVER = "never"
"""The value of `keep_texts` instead of a number of days."""

_KEYS = tuple(field.name for field in fields(RecordingOptions))
_EARLIER = "texts"
"""The key of earlier versions: `false` for never, `true` for as long as the query is kept."""


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_whole(least: int, most: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


_ACCEPTED: dict[str, tuple[Callable[[object], bool], str]] = {
    "record": (lambda value: value in RECORDED, 'one of all, shadows, "off"'),
    "keep_texts": (
        lambda value: value == NEVER or _is_whole(0, MOST_DAYS)(value),
        f"{NEVER}, or a whole number of days up to {MOST_DAYS}",
    ),
    _EARLIER: (lambda value: isinstance(value, bool), "true or false"),
    "keep_days": (_is_whole(1, MOST_DAYS), f"a whole number of days from 1 to {MOST_DAYS}"),
    "max_mb": (_is_whole(LEAST_MB, MOST_MB), f"a whole number of megabytes from {LEAST_MB} to {MOST_MB}"),
    "observe": (_is_share, "a share of the queries from 0 to 1"),
    "sample": (_is_share, "a share of the queries from 0 to 1"),
}


def recording_of(entry: MappingEntry | None, problems: list[Problem]) -> RecordingOptions:
    """The values of the entry, with defaults. Invalid values are added to `problems` and count as absent."""
    if entry is None or empty(entry.value):
        return RecordingOptions()
    if not isinstance(entry.value, YamlMapping):
        problems.append(form(entry.value, "'evaluation'", f"a mapping with {', '.join(_KEYS)}"))
        return RecordingOptions()
    report_unknown(entry.value, (*_KEYS, _EARLIER), "'evaluation'", problems)
    said: dict[str, Any] = {}
    for key, (is_meant, expected) in _ACCEPTED.items():
        written = entry.value.get(key)
        if written is None or empty(written.value):
            continue
        value = written.value.value if isinstance(written.value, Scalar) else None
        if is_meant(value):
            said[key] = value
        else:
            problems.append(form(written.value, f"'{key}'", expected))
    # The present key wins if both are given.
    if _EARLIER in said:
        said.setdefault("keep_texts", said.get("keep_days", RecordingOptions().keep_days) if said[_EARLIER] else NEVER)
        del said[_EARLIER]
    if said.get("keep_texts") == NEVER:
        said["keep_texts"] = 0
    return RecordingOptions(**said)
