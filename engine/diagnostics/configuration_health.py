"""Describes the configuration for the health report: the pipeline, flags, settings and vector search.

A process that does not follow its files keeps the configuration from its start, as every process does for some
settings, so the report also says when a restart would change something.
"""

from __future__ import annotations

from collections.abc import Iterator

from speckit_memory.config.flags.flag import Flag
from speckit_memory.config.flags.flag_files import SHIPPED_FILE
from speckit_memory.config.flags.flags import load_flags
from speckit_memory.config.workspace.options import KEYS
from speckit_memory.config.workspace.settings import (
    BY_CALL,
    BY_VALUE,
    CONFIG_FILE,
    PIPELINE_FILE,
    SHIPPED,
    Settings,
    settings,
)
from speckit_memory.config.workspace.workspace_file import ExtensionSettings, extensions_in_force, load_workspace_config
from speckit_memory.engine.pipelines.flags_in_pipelines import WaitingPresets, waiting
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.read_model.vectors.ivf_lists import INSTALL, is_faiss_installed
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.pipeline.configuration.builder import examine
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.roles.registry import Registry

RESTART = "The process serves the old configuration until it is restarted."
MEND = "The previous state stays in force until the files are fixed; the next search uses them without a restart."
MEND_START = "The shipped pipeline answers until the files are fixed; the next search uses them without a restart."
NAMED = 8
"""Maximum number of flags listed; `flags list` shows all."""


def told_pipeline(config: Settings, pipeline: Pipeline) -> str:
    """The pipeline that is served, and where it was chosen."""
    told = f"'{pipeline.name}' ({pipeline.hash}): {config.pipeline_told}"
    file = config.root / PIPELINE_FILE
    return f"{told}; {file} is not served" if file.exists() and str(file) != config.pipeline else told


def changed_since(config: Settings, pipeline: Pipeline, registry: Registry) -> str:
    """How a restart would change the pipeline, "" for no difference.

    A pipeline that was given as a value is not checked; its caller controls it.
    """
    if config.pipeline_by == BY_VALUE:
        return ""
    named = config.pipeline if config.pipeline_by == BY_CALL else None
    now = settings(config.db, named, config.root, config.environ)
    try:
        found = examine(now.pipeline, registry, config.environ_of_root, config.overrides)
    except SpeckitError as error:
        return f"a restart would fail: {error.problems[0]}"
    if found.problems:
        return f"a restart would fail: {SpeckitError.of(found.problems).problems[0]}"
    if found.hash != pipeline.hash:
        return f"the files have changed: {now.pipeline} is '{found.effective.name}' ({found.hash}) now"
    return ""


def told_flags(config: Settings, registry: Registry) -> str:
    """The flags that are set outside the shipped file. Raises SpeckitError for invalid flags."""
    flags = load_flags(config.environ_of_root, extensions=registry.flag_files())
    decided = [flag for flag in flags.values() if not flag.decided or flag.decided.file != SHIPPED_FILE]
    told = f"{len(flags)} flags; {_few(decided) or 'all as shipped'}"
    active = [flag for flag in flags.values() if flag.state != "off"]
    return "; ".join([told, *(_doing(active, waiting(config)) if active else ())])


def _doing(active: list[Flag], pipelines: WaitingPresets) -> Iterator[str]:
    """The effect of each enabled flag on the pipeline in use, or the presets that have steps for it."""
    for flag in active[:NAMED]:
        others = " and ".join(pipelines.pipelines(flag.name)) or "no preset"
        yield f"{flag.name}: {pipelines.runs(flag) or f'{pipelines.in_use} does not use it, {others} does'}"


def _few(flags: list[Flag]) -> str:
    more = f" and {len(flags) - NAMED} more" if len(flags) > NAMED else ""
    return ", ".join(f"{flag.name} {flag.state} ({flag.origin})" for flag in flags[:NAMED]) + more


def told_settings(config: Settings) -> str:
    """Where each setting of `config.yaml` was set. Raises SpeckitError for an invalid file."""
    origins = load_workspace_config(config.root, config.environ).origins
    told = [f"{key}: {origins[key]}" for key in KEYS if key in origins]
    shipped = [key for key in KEYS if key not in origins]
    return "; ".join([*told, *([f"{SHIPPED}: {', '.join(shipped)}"] if shipped else [])])


def waiting_for_restart(config: Settings, extensions: ExtensionSettings) -> list[str]:
    """The settings, with their places, that have changed since the store was opened with them.

    Raises SpeckitError for an invalid file or environment.
    """
    found = extensions_in_force(config.environ, config.root)
    now = load_workspace_config(config.root, config.environ)
    pairs: dict[str, tuple[object, object]] = {
        "extensions": (extensions.mode, found.mode),
        "extensions_memory_mb": (extensions.memory_mb, found.memory_mb),
        "evaluation": (config.recording, now.evaluation),
        "vector_index": (config.vector_index, now.vector_index),
        "entities": (config.entities, now.entities),
    }
    file = config.root / CONFIG_FILE
    return [f"{key} ({now.origins.get(key, file)})" for key, (before, after) in pairs.items() if before != after]


_WRITE = "`speckit-memory doctor --fix` writes a segment with the index. Until then answers are exact."


def told_vectors(opened: OpenStore) -> tuple[str, str]:
    """The present method, and a hint if it can be improved. Without an index, answers are exact."""
    count, setting = vectors.count(opened.database.reader()), opened.vector_index
    space, index = opened.read_model.current().vectors, opened.database.vector_index
    lists = space.listed
    all_compared = f"all {count:,} vectors are compared"
    if space.from_file and index is not None and setting.answers(count) and index.usable(space.dimensions):
        return f"an approximate index of the server finds the nearest of {count:,} vectors, as there is no segment", ""
    if lists is not None and not lists.failure:
        return f"an approximate index finds the nearest of {count:,} vectors (from {setting.least:,} on)", ""
    if setting.least is None:
        return f"{all_compared}; the index is switched off", ""
    if not setting.used:
        return f"{all_compared}; an index may be built but not used", ""
    if not setting.wanted(count):
        return f"{all_compared}; an approximate index is used from {setting.least:,} on", ""
    if not is_faiss_installed():
        return f"{all_compared}, although there are many", f"`{INSTALL}` finds the nearest faster. {_WRITE}"
    if lists is not None:
        return f"{all_compared}: {lists.failure}", _WRITE
    return f"{all_compared}, although there are many: the segment in use has no index of them", _WRITE
