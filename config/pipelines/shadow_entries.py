"""The keys `shadows` and `dark_runs` of a pipeline file: pipelines that run in addition to it (features P4, P5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Interval

from speckit_memory.config.yaml.accepted import Accepted
from speckit_memory.config.yaml.binding import bind_whole
from speckit_memory.config.yaml.reader import MappingEntry, Node, Scalar, Sequence, YamlMapping, plain
from speckit_memory.errors import Problem, Where

BesideMode = Literal["dark_run", "shadow"]

MODES: dict[str, BesideMode] = {"shadows": "shadow", "dark_runs": "dark_run"}
"""The keys, and the mode in which the listed pipelines run."""

MOST_BESIDE = 8
"""Maximum number of variants of one pipeline, including those of flags. Each one answers the query once more."""

DARK_SHARE = 0.05
"""Default share of queries for a dark run: a sample shows the cost under load, and each query costs a whole search."""
LONGEST_NAME = 60
"""Maximum characters of an entry's name."""

SHARES: dict[BesideMode, float] = {"shadow": 1.0, "dark_run": DARK_SHARE}
"""Default share of queries by mode."""


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return str(value)


def _name(value: Any) -> str:
    if len(_text(value)) > LONGEST_NAME:
        raise ValueError
    return str(value)


@dataclass(frozen=True, slots=True)
class DarkRunKeys:
    """The keys of an entry of `dark_runs`, whose answers are discarded and cannot be interleaved."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    use: Annotated[str, Accepted("a preset or a file", _text)]
    sample: Annotated[float | None, Interval(gt=0, le=1), Accepted("a share of queries above 0 and at most 1")] = None
    name: Annotated[str, Accepted(f"a text of 1 to {LONGEST_NAME} characters", _name)] = ""


@dataclass(frozen=True, slots=True)
class ShadowKeys(DarkRunKeys):
    """The keys of an entry of `shadows`."""

    interleave: Annotated[bool, Accepted("true or false")] = False


_KINDS: dict[BesideMode, type[DarkRunKeys]] = {"shadow": ShadowKeys, "dark_run": DarkRunKeys}
KEYS = {mode: tuple(field.name for field in fields(kind)) for mode, kind in _KINDS.items()}
"""The keys of an entry by mode."""


@dataclass(frozen=True, slots=True)
class ShadowEntry:
    """One entry: the preset or file `use`, and the share of queries that it sees, (0, 1].

    With `interleave`, its answers are mixed with those of the control; `name` is "" for the name in its file.
    """

    mode: BesideMode
    use: str
    where: Where
    name: str = ""
    sample: float = 1.0
    interleave: bool = False


def shadow_entries(entry: MappingEntry | None, problems: list[Problem]) -> tuple[ShadowEntry, ...] | None:
    """The entries of a key, None if the key is absent. Invalid entries are left out and added to `problems`."""
    if entry is None:
        return None
    mode = MODES[entry.key]
    if isinstance(entry.value, Scalar) and entry.value.value is None:
        return ()
    if not isinstance(entry.value, Sequence):
        example = f"{entry.key}: [rrf, {{use: other.yaml, sample: 0.2}}]"
        message = f"'{entry.key}' must be a list of presets and files; for example {example}"
        problems.append(Problem("E114", message, where=entry.value.where))
        return ()
    if len(entry.value.items) > MOST_BESIDE:
        message = f"'{entry.key}' lists {len(entry.value.items):,} pipelines; at most {MOST_BESIDE} are accepted"
        problems.append(Problem("E114", message, where=entry.value.items[MOST_BESIDE].where))
    return tuple(_entries(entry.value.items[:MOST_BESIDE], mode, entry.key, problems))


def _entries(items: tuple[Node, ...], mode: BesideMode, key: str, problems: list[Problem]) -> Iterator[ShadowEntry]:
    for item in items:
        if isinstance(item, Scalar) and isinstance(item.value, str) and item.value:
            yield ShadowEntry(mode, item.value, item.where, sample=SHARES[mode])
        elif isinstance(item, YamlMapping):
            found = _entry(item, mode, key, problems)
            if found is not None:
                yield found
        else:
            message = f"an entry of '{key}' must be a preset, a file, or a mapping with 'use'; found {plain(item)!r}"
            problems.append(Problem("E114", message, where=item.where))


def _entry(node: YamlMapping, mode: BesideMode, key: str, problems: list[Problem]) -> ShadowEntry | None:
    said, wrong = bind_whole(_KINDS[mode], node, f"an entry of '{key}'")
    problems += wrong
    if said is None:
        return None
    sample = SHARES[mode] if said.sample is None else said.sample
    return ShadowEntry(mode, said.use, node.where, said.name, sample, isinstance(said, ShadowKeys) and said.interleave)
