"""`.speckit/config.yaml`: the shared settings of a workspace, and the environment variables that precede it.

Precedence: arguments of a call, then environment, then this file, then the shipped defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from speckit_memory.config.files.regular_file import workspace_text
from speckit_memory.config.workspace.configured_store import ACTIONS, without_password
from speckit_memory.config.workspace.options import (
    KEYS,
    MEMORY_MB,
    MODES,
    Mode,
    RecordingOptions,
    ToolProfile,
    WorkspaceConfig,
)
from speckit_memory.config.workspace.settings import (
    CONFIG_FILE,
    DEADLINE_VARIABLE,
    EVALUATION_VARIABLE,
    EXTENSIONS_MEMORY_VARIABLE,
    EXTENSIONS_VARIABLE,
    PROFILE_VARIABLE,
    READ_FROM_VARIABLE,
    VECTOR_INDEX_VARIABLE,
    settings,
)
from speckit_memory.config.workspace.store_address import require_address
from speckit_memory.config.yaml.binding import bind, setting_from_text
from speckit_memory.config.yaml.reader import Node, Scalar, YamlMapping, plain, read
from speckit_memory.errors import Problem, SpeckitError, Where

VARIABLES = {
    DEADLINE_VARIABLE: ("deadline_ms",),
    EXTENSIONS_VARIABLE: ("extensions",),
    EXTENSIONS_MEMORY_VARIABLE: ("extensions_memory_mb",),
    EVALUATION_VARIABLE: ("evaluation", "record"),
    VECTOR_INDEX_VARIABLE: ("vector_index",),
}
"""The environment variables that precede a key of the file for every command, and the path of the value."""


def load_workspace_config(root: Path, environ: Mapping[str, str] | None = None) -> WorkspaceConfig:
    """The configuration in force: environment, if given, then file, then defaults. Raises all problems together."""
    config, problems = read_workspace_config(root, environ)
    if problems:
        raise SpeckitError.of(problems)
    return config


def read_workspace_config(
    root: Path, environ: Mapping[str, str] | None = None
) -> tuple[WorkspaceConfig, list[Problem]]:
    """The configuration in force and all problems with it. An invalid value counts as absent."""
    file = root / CONFIG_FILE
    text, problems = workspace_text(file)
    config = WorkspaceConfig()
    origins: dict[str, Where | str] = {}
    if text is not None:
        node, problems = read(text, str(file))
        bound, unsafe = without_password(_in_present_form(node), str(file))
        config, misshapen = bind(WorkspaceConfig, bound, "the file", ACTIONS)
        problems = [*problems, *unsafe, *misshapen]
        entries = node.entries if isinstance(node, YamlMapping) else ()
        origins = {entry.key: entry.where for entry in entries if entry.key in KEYS}
    for variable, path in VARIABLES.items():
        written = (environ or {}).get(variable, "").strip().lower()
        if not written:
            continue
        owner: Any = config if len(path) == 1 else getattr(config, path[0])
        try:
            value: Any = setting_from_text(type(owner), path[-1], written, variable)
        except SpeckitError as error:
            problems += error.problems
            continue
        if owner is not config:
            value = replace(owner, **{path[-1]: value})
        config = replace(config, **{path[0]: value})
        origins[path[0]] = variable
    if addresses := (environ or {}).get(READ_FROM_VARIABLE, "").split():
        try:
            given = tuple(require_address(one, READ_FROM_VARIABLE) for one in addresses)
            config = replace(config, read_from=given)
            origins["read_from"] = READ_FROM_VARIABLE
        except SpeckitError as error:
            problems += error.problems
    # Not a key of the file, so it is no parameter of the constructor either.
    object.__setattr__(config, "origins", origins)
    return config, problems


def _in_present_form(node: Node | None) -> Node | None:
    """The file with the present key for `evaluation: {texts: true}` or `false` of earlier versions.

    They kept texts as long as the query, or never. The present key wins if both are given.
    """
    if not isinstance(node, YamlMapping):
        return node
    entry = node.get("evaluation")
    inside = entry.value if entry and isinstance(entry.value, YamlMapping) else None
    texts = inside.get("texts") if inside else None
    if entry is None or inside is None or texts is None or not isinstance(kept := plain(texts.value), bool):
        return node
    days = inside.get("keep_days")
    value = days.value if days and kept else Scalar(RecordingOptions().keep_days if kept else 0, texts.where)
    present = () if inside.get("keep_texts") else (replace(texts, key="keep_texts", value=value),)
    written = (*(one for one in inside.entries if one is not texts), *present)
    changed = replace(entry, value=replace(inside, entries=written))
    return replace(node, entries=tuple(changed if one is entry else one for one in node.entries))


@dataclass(frozen=True, slots=True)
class ExtensionSettings:
    """Where extensions run, and the address space in megabytes of their separate process; 0 means no limit."""

    mode: Mode = "isolated"
    memory_mb: int = MEMORY_MB


def extensions_in_force(environ: Mapping[str, str] | None = None, root: Path | None = None) -> ExtensionSettings:
    """The settings for stores of `root`: the stricter of those of `root` and of this process's own workspace.

    Evaluating or demonstrating another folder therefore runs no extension that the workspace isolates. Raises
    SpeckitError for an invalid value in the environment or a file.
    """
    here = settings(environ=environ)
    there = here if root is None else settings(root=root, environ=environ)
    roots = dict.fromkeys((there.root, here.root))
    found = [load_workspace_config(each, here.environ) for each in roots]
    strictest = max(found, key=lambda one: MODES.index(one.extensions))
    return ExtensionSettings(strictest.extensions, strictest.extensions_memory_mb)


def profile_in_force(root: Path, environ: Mapping[str, str]) -> ToolProfile:
    """The profile for servers of a workspace; its variable matters to no other command. Raises SpeckitError."""
    found: ToolProfile = load_workspace_config(root, environ).profile
    if written := environ.get(PROFILE_VARIABLE, "").strip().lower():
        found = setting_from_text(WorkspaceConfig, "profile", written, PROFILE_VARIABLE)
    return found


def deadline_of(value: float | str, name: str) -> float | None:
    """Parse a deadline in milliseconds given under `name`; None for no deadline. Raises E030."""
    found: float | None = setting_from_text(WorkspaceConfig, "deadline_ms", str(value), name)
    return found
