"""What one server serves and how, whichever way clients come to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from speckit_memory.config.options.tool_profile import ToolProfile
from speckit_memory.errors import SpeckitError
from speckit_memory.server.console.arguments.options import Common
from speckit_memory.server.logging import logs


@dataclass(frozen=True, slots=True)
class Served:
    """The workspaces of one server.

    `roots` are their folders by name, empty where the workspace is that of the environment; `profiles` the tools that
    each offers, in the same order. `broken` are those that cannot be used as they are: their clients are told, others
    are served. An answer is given again for `cache_seconds` while nothing changes; with `watch`
    changed files are indexed.
    """

    common: Common
    roots: Mapping[str, Path]
    profiles: tuple[ToolProfile, ...]
    broken: Mapping[str, SpeckitError]
    warm_up: bool
    cache_seconds: int
    watch: bool

    def log_broken(self) -> None:
        """Says which workspaces cannot be used, and why."""
        for name, error in self.broken.items():
            problems = [str(problem) for problem in error.problems]
            logs.event("workspace cannot be used", "warning", **{logs.WORKSPACE: name}, problems=problems)
