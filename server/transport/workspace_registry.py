"""The configuration of a server, independent of its transport."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from speckit_memory.config.workspace.options import ToolProfile
from speckit_memory.errors import SpeckitError
from speckit_memory.server.calls.worker_processes import WorkerOptions
from speckit_memory.server.console.arguments.options import Common
from speckit_memory.server.logging import logs


@dataclass(frozen=True, slots=True)
class WorkspaceRegistry:
    """The workspaces of a server and its options.

    `roots` maps names to folders, empty for the single workspace of the environment; `profiles` has the tool profile of
    each, in the same order. `broken` maps unusable workspaces to their errors, which their clients receive. Cached
    answers stay valid for `cache_seconds`; with `watch`, changed files are indexed. Over HTTP, `workers` processes
    answer reading calls; 1 for that of the server.
    """

    common: Common
    roots: Mapping[str, Path]
    profiles: tuple[ToolProfile, ...]
    broken: Mapping[str, SpeckitError]
    warm_up: bool
    cache_seconds: int
    watch: bool
    workers: int = 1

    def of_worker(self) -> WorkerOptions:
        """What a worker needs to know."""
        roots: Mapping[str, Path | None] = self.roots or {"": None}
        workspaces = {name: (root, profile) for (name, root), profile in zip(roots.items(), self.profiles, strict=True)}
        return WorkerOptions(self.common, workspaces, self.cache_seconds)

    def log_broken(self) -> None:
        """Logs the unusable workspaces and the reasons."""
        for name, error in self.broken.items():
            problems = [str(problem) for problem in error.problems]
            logs.event("workspace cannot be used", "warning", **{logs.WORKSPACE: name}, problems=problems)
