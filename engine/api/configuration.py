"""Holds a memory's configuration in force and follows the files it was read from."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from speckit_memory.config.pipelines.sources import DEFAULT
from speckit_memory.config.workspace.settings import BY_CALL, BY_VALUE, SHIPPED, Settings
from speckit_memory.engine.search.searcher import Searcher
from speckit_memory.engine.serving.cache_key import StateToken
from speckit_memory.engine.serving.serving import ActiveConfiguration, problems_of
from speckit_memory.engine.session.reopening import ReopeningStore
from speckit_memory.pipeline.configuration.loading import PipelineSource
from speckit_memory.pipeline.roles.composition import Pipeline

if TYPE_CHECKING:
    from speckit_memory.engine.serving.reloading import FilesFollowed, Reloading


def chosen_or_shipped(
    source: PipelineSource, config: Settings, *, strict: bool, stand_in: bool
) -> tuple[Searcher, Settings]:
    """Builds the chosen pipeline, or the shipped one as a fallback.

    Args:
        source: The chosen pipeline.
        config: The settings, which say where the pipeline was chosen.
        strict: Raise failures of steps instead of degrading the answer.
        stand_in: Fall back to the shipped pipeline if files or the environment chose one that cannot be used.

    Returns:
        The pipeline, and the settings that name it.

    Raises:
        SpeckitError: The chosen pipeline cannot be used, and there is no fallback.
    """
    try:
        return Searcher.through(source, config, config.overrides, strict=strict), config
    except Exception as error:
        if not stand_in or config.overrides or config.pipeline_by in (BY_CALL, BY_VALUE):
            raise
        shipped = Searcher.shipped(config, problems_of(error), strict=strict)
        return shipped, replace(config, pipeline=DEFAULT, pipeline_by=SHIPPED)


class ConfigurationOperations(ABC):
    """The part of `engine.api.memory.Memory` that holds the configuration in force."""

    _in_force: ActiveConfiguration
    _files: Reloading | None = None

    @property
    @abstractmethod
    def _followed(self) -> ReopeningStore:
        """The open store."""

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._in_force.now.settings

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline in force."""
        return self._searching.runner.pipeline

    @property
    def _searching(self) -> Searcher:
        return self._in_force.now.searching

    def follow_files(self, since: float | None = None) -> None:
        """From now on applies changes of the configuration files to searches; for long-lived processes.

        Files that changed after `since` (epoch seconds) count as changed. A broken file changes nothing; if the files
        were broken from the start, the shipped pipeline stays; every answer says so (docs/pipeline.md). A pipeline that
        was given as a value is not followed.
        """
        # imported here: only servers follow files
        from speckit_memory.engine.serving.reloading import Reloading, can_be_followed

        if can_be_followed(self._in_force.now):
            recorder = self._followed.current.recorder
            self._files = Reloading(self._in_force, recorder, time.time() if since is None else since)

    def look_at_files(self) -> FilesFollowed | None:
        """Applies changed configuration files, if they are followed; searches call this themselves.

        Returns the state of the files, None if they are not followed.
        """
        if self._files is None:
            return None
        self._files.look()
        return self._files.state

    def standing(self) -> StateToken | None:
        """The cache key of answers; None if answers are interleaved, which is random per query.

        An answer made after the key was taken stays valid until the key changes, unless it depends on the clock.
        Raises as a search does if the store cannot be read.
        """
        self.look_at_files()
        serving = self._in_force.now
        if serving.shadows is not None and serving.shadows.mixes:
            return None
        files = self._files.turns if self._files else 0
        return StateToken(*self._followed.state(), serving.name, files)

    @property
    def _amiss(self) -> tuple[str, ...]:
        """Warnings about broken files, added to every answer."""
        return self._files.amiss if self._files else ()
