"""The configuration of a server, independent of its transport, and its checks before serving (feature T27)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os.path import lexists
from pathlib import Path

from speckit_memory.config.pipelines.sources import presets
from speckit_memory.config.workspace.options import ToolProfile
from speckit_memory.config.workspace.settings import BY_CALL, CONFIG_FILE, FLAGS_FILE, settings
from speckit_memory.config.workspace.store_address import address_at
from speckit_memory.config.workspace.workspace_file import profile_in_force
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.guarding.store_file import require_file, store_is_there
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


def check_workspaces(
    common: Common, roots: Mapping[str, Path | None], called: ToolProfile | None
) -> tuple[tuple[ToolProfile, ...], dict[str, SpeckitError]]:
    """The profile of each workspace, and the error of each unusable one. Raises SpeckitError when none can be
    served. Without `roots` there is one workspace, that of the options."""
    profiles: list[ToolProfile] = []
    broken: dict[str, SpeckitError] = {}
    for name, root in roots.items() or [("", None)]:
        profile: ToolProfile = called or "full"
        try:
            config = settings(common.db, common.pipeline, root)
            profile = called or profile_in_force(config.root, config.environ)
            check_configuration(common, root)
        except SpeckitError as error:
            broken[name] = error
        profiles.append(profile)
    # one usable workspace is enough to serve
    if len(broken) == len(profiles):
        raise SpeckitError.of([problem for error in broken.values() for problem in error.problems])
    return tuple(profiles), broken


def check_configuration(common: Common, root: Path | None = None) -> None:
    """Raises SpeckitError for an invalid store file, `.speckit/config.yaml`, or pipeline given by options.

    The workspace is the one of the options, or `root`. If a pipeline or flags set by files or the environment are
    unusable, the shipped ones are used instead.
    """
    config = settings(common.db, common.pipeline, root)
    if store_is_there(config.db) and not address_at(config.db):
        require_file(config.db, create=True, writable=False)
    if lexists(config.root / CONFIG_FILE):
        from speckit_memory.config.workspace.workspace_file import load_workspace_config

        load_workspace_config(config.root)
    if config.pipeline_by != BY_CALL and not common.overrides:
        return
    # shipped presets are tested with the package; checking one would only cost start-up time
    if config.pipeline in presets() and not common.overrides and not lexists(config.root / FLAGS_FILE):
        return
    # imports every component: a server without such options starts before that
    from speckit_memory.engine.pipelines.pipelines import check

    if problems := check(config.pipeline, config.environ_of_root, common.overrides):
        raise SpeckitError.of(problems)
