"""The keys `shadows` and `dark_runs` of a pipeline file: pipelines that run in addition to it (features P4, P5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from speckit_memory.config.yaml.reader import MappingEntry, Node, Scalar, Sequence, YamlMapping, plain
from speckit_memory.errors import Problem, Where, nearest
from speckit_memory.errors.echo import abridge

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
KEYS = {"shadow": ("use", "sample", "interleave", "name"), "dark_run": ("use", "sample", "name")}
"""The keys of an entry by mode. Answers of a dark run are discarded and cannot be interleaved."""


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
    before = len(problems)
    for entry in node.entries:
        if entry.key not in KEYS[mode]:
            message = f"an entry of '{key}' has no key '{abridge(entry.key)}'; {nearest(entry.key, KEYS[mode])}"
            problems.append(Problem("E115", message, where=entry.where))
    value = {entry.key: plain(entry.value) for entry in node.entries}
    use, name, sample = value.get("use"), value.get("name", ""), value.get("sample", SHARES[mode])
    if not isinstance(use, str) or not use:
        message = f"an entry of '{key}' needs the key 'use', a preset or a file"
        problems.append(Problem("E114", message, where=_place(node, "use")))
    if not isinstance(name, str) or len(name) > LONGEST_NAME or ("name" in value and not name.strip()):
        message = f"the name of an entry of '{key}' must be a text of 1 to {LONGEST_NAME} characters; found {name!r}"
        problems.append(Problem("E114", message, where=_place(node, "name")))
    if isinstance(sample, bool) or not isinstance(sample, int | float) or not 0 < sample <= 1:
        message = f"'sample' must be a share of queries above 0 and at most 1; found {sample!r}"
        problems.append(Problem("E114", message, where=_place(node, "sample")))
    if not isinstance(value.get("interleave", False), bool):
        message = f"'interleave' must be true or false; found {value['interleave']!r}"
        problems.append(Problem("E114", message, where=_place(node, "interleave")))
    # Report all problems of an entry before giving it up.
    if len(problems) > before:
        return None
    return ShadowEntry(mode, str(use), node.where, str(name), float(str(sample)), bool(value.get("interleave")))


def _place(node: YamlMapping, key: str) -> Where:
    entry = node.get(key)
    return entry.value.where if entry else node.where
