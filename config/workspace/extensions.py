"""The mode of installed extensions: environment, then the workspace's file, then this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from speckit_memory.config.workspace.extension_modes import ACCEPTED_MEMORY, MEMORY_MB, MODES, Mode, enough
from speckit_memory.config.workspace.settings import (
    EXTENSIONS_MEMORY_VARIABLE,
    EXTENSIONS_VARIABLE,
    Settings,
    refused_setting,
    settings,
)
from speckit_memory.config.workspace.workspace_file import load_workspace_config
from speckit_memory.errors import SpeckitError, refused


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
    found = [_read_settings(config) for config in ((there,) if there.root == here.root else (there, here))]
    # MODES is ordered from the least to the most strict.
    return max(found, key=lambda one: MODES.index(one.mode))


def _read_settings(config: Settings) -> ExtensionSettings:
    in_file = load_workspace_config(config.root)
    written = config.environ.get(EXTENSIONS_VARIABLE, "").strip().lower()
    memory = config.environ.get(EXTENSIONS_MEMORY_VARIABLE, "").strip()
    memory_in_file = MEMORY_MB if in_file.extensions_memory_mb is None else in_file.extensions_memory_mb
    return ExtensionSettings(
        mode=_mode(written) if written else in_file.extensions or "isolated",
        memory_mb=_megabytes(memory) if memory else memory_in_file,
    )


def _mode(written: str) -> Mode:
    for mode in MODES:
        if mode == written:
            return mode
    raise refused_setting(EXTENSIONS_VARIABLE, written, MODES)


def _megabytes(written: str) -> int:
    if not (written.isascii() and written.isdigit() and len(written) < 10 and enough(int(written))):
        step = f"set {EXTENSIONS_MEMORY_VARIABLE} to a number such as {MEMORY_MB}"
        raise SpeckitError.of([refused(EXTENSIONS_MEMORY_VARIABLE, written, ACCEPTED_MEMORY, step)])
    return int(written)
