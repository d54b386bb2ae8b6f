"""`.speckit/config.yaml`: what the people of a workspace have decided for all who work in it.

A value given with a call goes before one of the environment, that before this file, and this file before what is
shipped.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from pathlib import Path

from speckit_memory.config.files.patterns import compiled
from speckit_memory.config.options.checkpoint_limits import CheckpointLimits
from speckit_memory.config.options.checkpoint_values import checkpoints_of
from speckit_memory.config.options.entity_linking import EntityLinking
from speckit_memory.config.options.entity_linking_value import entity_linking_of
from speckit_memory.config.options.recording_modes import Recording
from speckit_memory.config.options.recording_values import recording_of
from speckit_memory.config.options.saving import SHIPPED_RULES, SavingRules
from speckit_memory.config.options.saving_values import saving_of
from speckit_memory.config.options.tool_profile import ToolProfile
from speckit_memory.config.options.tool_profile_value import tool_profile_of
from speckit_memory.config.options.vector_indexing import ACCEPTED, VectorIndexing, understood
from speckit_memory.config.options.workspace_values import ACTIONS, empty, form, report_unknown
from speckit_memory.config.workspace.absence import ABSENT_DAYS, ACCEPTED_DAYS, MOST_DAYS
from speckit_memory.config.workspace.extension_modes import ACCEPTED_MEMORY, MODES, Mode, enough
from speckit_memory.config.workspace.formats import FORMATS
from speckit_memory.config.workspace.settings import CONFIG_FILE
from speckit_memory.config.workspace.workspace_text import workspace_text
from speckit_memory.config.yaml.reader import Mapping, Scalar, Sequence, read
from speckit_memory.errors import Problem, SpeckitError, Where

_KEYS = (
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
    """A pattern as in a `.gitignore` file, relative to the workspace root, and where it was written."""

    text: str
    where: Where


@dataclass(frozen=True, slots=True)
class SourcePatterns:
    """Which files are taken, as `docs/workspace.md` says; without any pattern, what is taken by default."""

    include: tuple[SourcePattern, ...] = ()
    exclude: tuple[SourcePattern, ...] = ()
    formats: tuple[str, ...] = ()
    """Names of `FORMATS` that are taken besides Markdown and plain text."""


@dataclass(frozen=True, slots=True)
class WorkspaceConfig:
    """The values of the file. `deadline_ms` is above 0; None when the file says nothing of it, or null. `absent_days`,
    above 0, is how long a memory is kept whose file is not there.

    `extensions` is one of `MODES` and `extensions_memory_mb` 0 (no limit) or enough to start in, likewise.
    """

    sources: SourcePatterns = SourcePatterns()
    deadline_ms: float | None = None
    extensions: Mode | None = None
    extensions_memory_mb: int | None = None
    evaluation: Recording = field(default_factory=Recording)
    vector_index: VectorIndexing = field(default_factory=VectorIndexing)
    saving: SavingRules = SHIPPED_RULES
    checkpoints: CheckpointLimits = field(default_factory=CheckpointLimits)
    absent_days: float = ABSENT_DAYS
    entities: EntityLinking = "off"
    profile: ToolProfile = "full"
    places: MappingOf[str, Where] = field(default_factory=dict)
    """Where each key of the file stands; a key that is not written has none."""


def load_workspace_config(root: Path) -> WorkspaceConfig:
    """The configuration of the workspace in `root`; without a file, what holds by default. Raises all problems."""
    config, problems = read_workspace_config(root)
    if problems:
        raise SpeckitError.of(problems)
    return config


def read_workspace_config(root: Path) -> tuple[WorkspaceConfig, list[Problem]]:
    """The configuration and everything that is wrong with the file. A broken value counts as not written."""
    file = root / CONFIG_FILE
    text, unread = workspace_text(file)
    if text is None:
        return WorkspaceConfig(), unread
    node, problems = read(text, str(file))
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return WorkspaceConfig(), problems
    if not isinstance(node, Mapping):
        return WorkspaceConfig(), [*problems, form(node, "the file", f"a mapping with {', '.join(_KEYS)}")]
    report_unknown(node, _KEYS, "the file", problems)
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
            places={entry.key: entry.where for entry in node.entries if entry.key in _KEYS},
        ),
        problems,
    )


def _sources(node: Mapping, problems: list[Problem]) -> SourcePatterns:
    entry = node.get("sources")
    if entry is None or empty(entry.value):
        return SourcePatterns()
    if not isinstance(entry.value, Mapping):
        problems.append(form(entry.value, "'sources'", f"a mapping with {', '.join(_SOURCE_KEYS)}"))
        return SourcePatterns()
    report_unknown(entry.value, _SOURCE_KEYS, "'sources'", problems)
    include, exclude = (_patterns(entry.value, key, problems) for key in ("include", "exclude"))
    return SourcePatterns(include, exclude, _formats(entry.value, "formats", problems))


def _formats(node: Mapping, key: str, problems: list[Problem]) -> tuple[str, ...]:
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


def _patterns(node: Mapping, key: str, problems: list[Problem]) -> tuple[SourcePattern, ...]:
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
        elif reason := _useless(item.value, key):
            message = f"'{item.value}' is no pattern for '{key}': {reason}"
            hint = "A pattern is a path below the workspace root, as .gitignore files have them: * ? [a-z] and **."
            problems.append(Problem("E114", message, hint, ACTIONS, item.where))
        else:
            patterns.append(SourcePattern(item.value, item.where))
    return tuple(patterns)


def _useless(pattern: str, key: str) -> str:
    """Why a pattern does nothing here, "" when it may. To the library, blanks and comments are patterns that do not."""
    if {".", ".."} & set(pattern.split("/")):
        return "it begins at the workspace root, and has no part '.' or '..'"
    if key == "include" and pattern.startswith("!"):
        return "what is not wanted stands under 'exclude'"
    try:
        meant = any(made.include is not None for made in compiled([pattern]).patterns)
    except ValueError:
        meant = False
    return "" if meant else "it matches nothing"


def _milliseconds(node: Mapping, key: str, problems: list[Problem]) -> float | None:
    entry = node.get(key)
    if entry is None or empty(entry.value):
        return None
    value = entry.value.value if isinstance(entry.value, Scalar) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        problems.append(form(entry.value, f"'{key}'", "a number of milliseconds above 0, or null"))
        return None
    return float(value)


def _days(node: Mapping, key: str, problems: list[Problem]) -> float:
    entry = node.get(key)
    if entry is None or empty(entry.value):
        return ABSENT_DAYS
    value = entry.value.value if isinstance(entry.value, Scalar) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < MOST_DAYS:
        problems.append(form(entry.value, f"'{key}'", ACCEPTED_DAYS))
        return ABSENT_DAYS
    return float(value)


def _mode(node: Mapping, key: str, problems: list[Problem]) -> Mode | None:
    entry = node.get(key)
    if entry is None or empty(entry.value):
        return None
    written = entry.value.value if isinstance(entry.value, Scalar) else None
    found = next((mode for mode in MODES if mode == written), None)
    if found is None:
        problems.append(form(entry.value, f"'{key}'", f"one of {', '.join(MODES)}"))
    return found


def _megabytes(node: Mapping, key: str, problems: list[Problem]) -> int | None:
    entry = node.get(key)
    if entry is None or empty(entry.value):
        return None
    value = entry.value.value if isinstance(entry.value, Scalar) else None
    if isinstance(value, bool) or not isinstance(value, int) or not enough(value):
        problems.append(form(entry.value, f"'{key}'", ACCEPTED_MEMORY))
        return None
    return value


def _vector_indexing(node: Mapping, key: str, problems: list[Problem]) -> VectorIndexing:
    entry = node.get(key)
    if entry is None or empty(entry.value):
        return VectorIndexing()
    found = understood(entry.value.value) if isinstance(entry.value, Scalar) else None
    if found is None:
        problems.append(form(entry.value, f"'{key}'", ACCEPTED))
    return found or VectorIndexing()
