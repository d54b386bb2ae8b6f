"""`.speckit/config.yaml`: the shared settings of a workspace.

Precedence: arguments of a call, then environment, then this file, then the shipped defaults.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from speckit_memory.config.files.patterns import compile_patterns
from speckit_memory.config.options.checkpoint_limits import CheckpointLimits
from speckit_memory.config.options.checkpoint_values import checkpoints_of
from speckit_memory.config.options.entity_linking import ENTITY_LINKING, EntityLinking
from speckit_memory.config.options.recording_modes import RecordingOptions
from speckit_memory.config.options.recording_values import recording_of
from speckit_memory.config.options.saving import (
    PASSAGES,
    PREDICTION_ERROR,
    QUALITY,
    SECRETS,
    SHIPPED_RULES,
    SavingRules,
)
from speckit_memory.config.options.tool_profile import TOOL_PROFILES, ToolProfile
from speckit_memory.config.options.vector_indexing import ACCEPTED, VectorIndexing, understood
from speckit_memory.config.options.workspace_values import ACTIONS, empty, form, report_unknown
from speckit_memory.config.workspace.absence import ABSENT_DAYS, ACCEPTED_DAYS, MOST_DAYS
from speckit_memory.config.workspace.extension_modes import ACCEPTED_MEMORY, MODES, Mode, enough
from speckit_memory.config.workspace.formats import FORMATS
from speckit_memory.config.workspace.settings import CONFIG_FILE
from speckit_memory.config.workspace.workspace_text import workspace_text
from speckit_memory.config.yaml.reader import MappingEntry, Scalar, Sequence, YamlMapping, read
from speckit_memory.errors import Problem, SpeckitError, Where

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


def tool_profile_of(entry: MappingEntry | None, problems: list[Problem]) -> ToolProfile:
    """The value of `profile`. Invalid values are added to `problems` and count as absent."""
    if entry is None or empty(entry.value):
        return "full"
    written = entry.value.value if isinstance(entry.value, Scalar) else None
    for accepted in TOOL_PROFILES:
        if written == accepted:
            return accepted
    problems.append(form(entry.value, "'profile'", " or ".join(f'"{each}"' for each in TOOL_PROFILES)))
    return "full"


def entity_linking_of(entry: MappingEntry | None, problems: list[Problem]) -> EntityLinking:
    """The value of `entities`. Invalid values are added to `problems` and count as absent."""
    if entry is None or empty(entry.value):
        return "off"
    written = entry.value.value if isinstance(entry.value, Scalar) else None
    for accepted in ENTITY_LINKING:
        if written == accepted:
            return accepted
    problems.append(form(entry.value, "'entities'", " or ".join(f'"{each}"' for each in ENTITY_LINKING)))
    return "off"


KEYS = (
    "sources",
    "deadline_ms",
    "extensions",
    "extensions_memory_mb",
    "evaluation",
    "vector_index",
    "saving",
    "checkpoints",
    "absent_days",
    "entities",
    "profile",
)
_SOURCE_KEYS = ("include", "exclude", "formats")


@dataclass(frozen=True, slots=True)
class SourcePattern:
    """A pattern in the syntax of `.gitignore`, relative to the workspace root, and its place."""

    text: str
    where: Where


@dataclass(frozen=True, slots=True)
class SourcePatterns:
    """Which files are indexed, see `docs/workspace.md`; the default files if there is no pattern."""

    include: tuple[SourcePattern, ...] = ()
    exclude: tuple[SourcePattern, ...] = ()
    formats: tuple[str, ...] = ()
    """Names of `FORMATS` that are indexed in addition to Markdown and plain text."""


@dataclass(frozen=True, slots=True)
class WorkspaceConfig:
    """The values of the file. `deadline_ms` is above 0, or None if the file has no value or null. `absent_days`, above
    0, is how long a memory whose file is absent is kept.

    `extensions` is one of `MODES`, `extensions_memory_mb` 0 (no limit) or enough to start, or None as above.
    """

    sources: SourcePatterns = SourcePatterns()
    deadline_ms: float | None = None
    extensions: Mode | None = None
    extensions_memory_mb: int | None = None
    evaluation: RecordingOptions = field(default_factory=RecordingOptions)
    vector_index: VectorIndexing = field(default_factory=VectorIndexing)
    saving: SavingRules = SHIPPED_RULES
    checkpoints: CheckpointLimits = field(default_factory=CheckpointLimits)
    absent_days: float = ABSENT_DAYS
    entities: EntityLinking = "off"
    profile: ToolProfile = "full"
    places: MappingOf[str, Where] = field(default_factory=dict)
    """The place of each key in the file."""


def load_workspace_config(root: Path) -> WorkspaceConfig:
    """The configuration of the workspace in `root`; defaults without a file. Raises all problems."""
    config, problems = read_workspace_config(root)
    if problems:
        raise SpeckitError.of(problems)
    return config


def read_workspace_config(root: Path) -> tuple[WorkspaceConfig, list[Problem]]:
    """The configuration and all problems with the file. An invalid value counts as absent."""
    file = root / CONFIG_FILE
    text, unread = workspace_text(file)
    if text is None:
        return WorkspaceConfig(), unread
    node, problems = read(text, str(file))
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return WorkspaceConfig(), problems
    if not isinstance(node, YamlMapping):
        return WorkspaceConfig(), [*problems, form(node, "the file", f"a mapping with {', '.join(KEYS)}")]
    report_unknown(node, KEYS, "the file", problems)
    return (
        WorkspaceConfig(
            sources=_sources(node, problems),
            deadline_ms=_milliseconds(node, "deadline_ms", problems),
            extensions=_mode(node, "extensions", problems),
            extensions_memory_mb=_megabytes(node, "extensions_memory_mb", problems),
            evaluation=recording_of(node.get("evaluation"), problems),
            vector_index=_vector_indexing(node, "vector_index", problems),
            saving=saving_of(node.get("saving"), problems),
            checkpoints=checkpoints_of(node.get("checkpoints"), problems),
            absent_days=_days(node, "absent_days", problems),
            entities=entity_linking_of(node.get("entities"), problems),
            profile=tool_profile_of(node.get("profile"), problems),
            places={entry.key: entry.where for entry in node.entries if entry.key in KEYS},
        ),
        problems,
    )


def _sources(node: YamlMapping, problems: list[Problem]) -> SourcePatterns:
    entry = node.get("sources")
    if entry is None or empty(entry.value):
        return SourcePatterns()
    if not isinstance(entry.value, YamlMapping):
        problems.append(form(entry.value, "'sources'", f"a mapping with {', '.join(_SOURCE_KEYS)}"))
        return SourcePatterns()
    report_unknown(entry.value, _SOURCE_KEYS, "'sources'", problems)
    include, exclude = (_patterns(entry.value, key, problems) for key in ("include", "exclude"))
    return SourcePatterns(include, exclude, _formats(entry.value, "formats", problems))


def _formats(node: YamlMapping, key: str, problems: list[Problem]) -> tuple[str, ...]:
    entry = node.get(key)
    if entry is None or empty(entry.value):
        return ()
    items = entry.value.items if isinstance(entry.value, Sequence) else (entry.value,)
    named = []
    for item in items:
        name = item.value if isinstance(item, Scalar) else None
        if isinstance(name, str) and name in FORMATS:
            named.append(name)
        else:
            problems.append(form(item, f"a format of '{key}'", f"one of {', '.join(FORMATS)}"))
    return tuple(dict.fromkeys(named))


def _patterns(node: YamlMapping, key: str, problems: list[Problem]) -> tuple[SourcePattern, ...]:
    entry = node.get(key)
    if entry is None or empty(entry.value):
        return ()
    if not isinstance(entry.value, Sequence):
        problems.append(form(entry.value, f"'{key}'", "a list of patterns, such as ['drafts/', '*.tmp.md']"))
        return ()
    patterns = []
    for item in entry.value.items:
        if not isinstance(item, Scalar) or not isinstance(item.value, str):
            problems.append(form(item, f"a pattern of '{key}'", "a text; put it in quotes"))
        # A pattern without effect is most likely a mistake.
        elif reason := _useless(item.value, key):
            message = f"'{item.value}' is not a pattern for '{key}': {reason}"
            hint = "A pattern is a path below the workspace root in the syntax of .gitignore: * ? [a-z] and **."
            problems.append(Problem("E114", message, hint, ACTIONS, item.where))
        else:
            patterns.append(SourcePattern(item.value, item.where))
    return tuple(patterns)


def _useless(pattern: str, key: str) -> str:
    """Why a pattern has no effect, "" if it may have one. The library accepts blanks and comments, which have none."""
    if {".", ".."} & set(pattern.split("/")):
        return "it is relative to the workspace root, and must not contain '.' or '..'"
    if key == "include" and pattern.startswith("!"):
        return "unwanted files belong under 'exclude'"
    try:
        meant = any(made.include is not None for made in compile_patterns([pattern]).patterns)
    except ValueError:
        meant = False
    return "" if meant else "it matches nothing"


def _milliseconds(node: YamlMapping, key: str, problems: list[Problem]) -> float | None:
    entry = node.get(key)
    if entry is None or empty(entry.value):
        return None
    value = entry.value.value if isinstance(entry.value, Scalar) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        problems.append(form(entry.value, f"'{key}'", "a number of milliseconds above 0, or null"))
        return None
    return float(value)


def _days(node: YamlMapping, key: str, problems: list[Problem]) -> float:
    entry = node.get(key)
    if entry is None or empty(entry.value):
        return ABSENT_DAYS
    value = entry.value.value if isinstance(entry.value, Scalar) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < MOST_DAYS:
        problems.append(form(entry.value, f"'{key}'", ACCEPTED_DAYS))
        return ABSENT_DAYS
    return float(value)


def _mode(node: YamlMapping, key: str, problems: list[Problem]) -> Mode | None:
    entry = node.get(key)
    if entry is None or empty(entry.value):
        return None
    written = entry.value.value if isinstance(entry.value, Scalar) else None
    found = next((mode for mode in MODES if mode == written), None)
    if found is None:
        problems.append(form(entry.value, f"'{key}'", f"one of {', '.join(MODES)}"))
    return found


def _megabytes(node: YamlMapping, key: str, problems: list[Problem]) -> int | None:
    entry = node.get(key)
    if entry is None or empty(entry.value):
        return None
    value = entry.value.value if isinstance(entry.value, Scalar) else None
    if isinstance(value, bool) or not isinstance(value, int) or not enough(value):
        problems.append(form(entry.value, f"'{key}'", ACCEPTED_MEMORY))
        return None
    return value


def _vector_indexing(node: YamlMapping, key: str, problems: list[Problem]) -> VectorIndexing:
    entry = node.get(key)
    if entry is None or empty(entry.value):
        return VectorIndexing()
    found = understood(entry.value.value) if isinstance(entry.value, Scalar) else None
    if found is None:
        problems.append(form(entry.value, f"'{key}'", ACCEPTED))
    return found or VectorIndexing()
