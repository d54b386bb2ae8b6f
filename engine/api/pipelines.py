"""The pipeline in force, and the files that it was read from."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.pipeline.roles.composition import Pipeline

if TYPE_CHECKING:
    from speckit_memory.engine.serving.reloading import FilesFollowed


class StateToken(NamedTuple):
    """One state of a store as one pipeline sees it. Valid in this process alone; never reused after a change."""

    store: str
    """Identifies the opening of the store; changes when its file is replaced."""
    commits: int
    """Changes with every commit of any process: memories, links, sessions, usage counts."""
    configuration: str
    """Identifies the settings and the pipeline in force."""
    files: int
    """Changes with the warnings about broken files."""


@dataclass(eq=False)
class PipelineService:
    """Reads the configuration in force and follows its files."""

    session: StoreSession

    @property
    def current(self) -> Pipeline:
        """The pipeline in force."""
        return self.session.searcher.runner.pipeline

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about broken files, added to every answer."""
        return self.session.files.amiss if self.session.files else ()

    def follow(self, since: float | None = None) -> None:
        """From now on applies changes of the configuration files to searches; for long-lived processes.

        Files that changed after `since` (epoch seconds) count as changed. A broken file changes nothing; if the files
        were broken from the start, the shipped pipeline stays; every answer says so (docs/pipeline.md). A pipeline that
        was given as a value is not followed.
        """
        # imported here: only servers follow files
        from speckit_memory.engine.serving.reloading import Reloading, can_be_followed

        if can_be_followed(self.session.configuration.now):
            recorder = self.session.opened.recorder
            self.session.files = Reloading(
                self.session.configuration, recorder, time.time() if since is None else since
            )

    def reload(self) -> FilesFollowed | None:
        """Applies changed configuration files, if they are followed; searches call this themselves.

        Returns the state of the files, None if they are not followed.
        """
        if self.session.files is None:
            return None
        self.session.files.look()
        return self.session.files.state

    def standing(self) -> StateToken | None:
        """The cache key of answers; None if answers are interleaved, which is random per query.

        An answer made after the key was taken stays valid until the key changes, unless it depends on the clock.
        Raises as a search does if the store cannot be read.
        """
        self.reload()
        serving = self.session.configuration.now
        if serving.shadows is not None and serving.shadows.mixes:
            return None
        files = self.session.files.turns if self.session.files else 0
        return StateToken(*self.session.store.state(), serving.name, files)
