"""The configuration that a memory answers with, and how it follows the files that this was read from."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from speckit_memory.config.pipelines.sources import DEFAULT
from speckit_memory.config.workspace.settings import BY_CALL, BY_VALUE, SHIPPED, Settings
from speckit_memory.engine.search.searcher import Searching
from speckit_memory.engine.serving.cache_key import Standing
from speckit_memory.engine.serving.serving import Served, problems_of
from speckit_memory.engine.session.reopening import Following
from speckit_memory.pipeline.configuration.loading import PipelineSource
from speckit_memory.pipeline.roles.composition import Pipeline

if TYPE_CHECKING:
    from speckit_memory.engine.serving.reloading import FilesFollowed, Reloading


def chosen_or_shipped(
    source: PipelineSource, config: Settings, *, strict: bool, stand_in: bool
) -> tuple[Searching, Settings]:
    """The pipeline that was chosen; with `stand_in` the shipped one where files or the environment have chosen one that
    cannot be used; and the settings that say so. Raises SpeckitError otherwise."""
    try:
        return Searching.through(source, config, config.overrides, strict=strict), config
    except Exception as error:
        if not stand_in or config.overrides or config.pipeline_by in (BY_CALL, BY_VALUE):
            raise
        shipped = Searching.shipped(config, problems_of(error), strict=strict)
        return shipped, replace(config, pipeline=DEFAULT, pipeline_by=SHIPPED)


class Configuring(ABC):
    """The part of `engine.api.memory.Memory` that holds the configuration in force."""

    _in_force: Served
    _files: Reloading | None = None

    @property
    @abstractmethod
    def _followed(self) -> Following:
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
    def _searching(self) -> Searching:
        return self._in_force.now.searching

    def follow_files(self, since: float | None = None) -> None:
        """From now on searches are answered as the files of the configuration say then: for a process that lives long.

        Files that were changed after `since` (epoch seconds) count as changed. What is broken changes nothing, or has
        the shipped pipeline stand in from the start, and every answer says so (docs/pipeline.md). A pipeline that was
        given as a value is in the hands of its owner.
        """
        # imported by who serves
        from speckit_memory.engine.serving.reloading import Reloading, can_be_followed

        if can_be_followed(self._in_force.now):
            recorder = self._followed.current.recorder
            self._files = Reloading(self._in_force, recorder, time.time() if since is None else since)

    def look_at_files(self) -> FilesFollowed | None:
        """Puts in force what the files say, if they are followed and have changed; a search does that by itself.

        Returns how they fare, None where they are not followed.
        """
        if self._files is None:
            return None
        self._files.look()
        return self._files.state

    def standing(self) -> Standing | None:
        """What answers depend on now; None where each is to be asked for anew, as it is mixed with that of another
        pipeline, and the coin is tossed for each query.

        An answer holds that was made between two calls that gave the same, until a third gives another, as far as the
        clock has no say. Raises as a search does when the store cannot be read.
        """
        self.look_at_files()
        serving = self._in_force.now
        if serving.shadows is not None and serving.shadows.mixes:
            return None
        store, commits = self._followed.run(lambda opened: (opened.name, opened.commits.number()))
        return Standing(store, commits, serving.name, self._amiss)

    @property
    def _amiss(self) -> tuple[str, ...]:
        """What every answer says of files that are broken."""
        return self._files.amiss if self._files else ()
