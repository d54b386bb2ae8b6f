"""Follows the configuration files while a process serves: pipelines, flags and settings (feature P4).

A changed configuration is built in the background and replaces the old one between two searches. A broken one changes
nothing: the last valid state is served, and every answer says so, until the files are fixed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from time import sleep

from speckit_memory.config.files.watching import WatchedFiles
from speckit_memory.config.pipelines.sources import SHIPPED
from speckit_memory.config.workspace.settings import BY_CALL, BY_VALUE, CONFIG_FILE, FLAGS_FILE, PIPELINE_FILE, settings
from speckit_memory.config.workspace.workspace_file import load_workspace_config
from speckit_memory.engine.background.gate import SERVING
from speckit_memory.engine.recording.recorder import Recorder
from speckit_memory.engine.search.searcher import Searcher
from speckit_memory.engine.serving.serving import ActiveConfiguration, ConfigurationState, problems_of
from speckit_memory.engine.serving.start_shadows import serving_of
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.errors.echo import abridge

LOGGER = logging.getLogger(__name__)

SETTLED_SECONDS = 0.05
"""A file that was modified more recently may be half written, as programs truncate a file before writing it."""
MOST_SETTLING = 5
"""How often a search waits for that time; files that keep changing are read by a later search."""
RETRY_SECONDS = 1.0
"""Interval of retries: a fault may be fixed by an unknown file, such as a missing one that a pipeline extends."""
TOLD = 300
"""Characters of a problem repeated in every answer; the health report contains all of it."""
CLOCK_SECONDS = 0.1
"""File times may lag behind the clock by this much."""


@dataclass(frozen=True, slots=True)
class FilesFollowed:
    """The state of the files.

    `wrong`: their problems, () for none, while the last valid state answers. `changes` and `at`: how often another
    state was put in force, and when last (epoch seconds). `stands_in`: there was no valid state, so the shipped
    pipeline answers.
    """

    wrong: tuple[Problem, ...] = ()
    changes: int = 0
    at: float | None = None
    stands_in: bool = False


class Reloading:
    """Follows the configuration files of one memory."""

    def __init__(self, served: ActiveConfiguration, recorder: Recorder, since: float) -> None:
        """Files modified after `since` (epoch seconds) are read again by the first look."""
        self._served = served
        self._recorder = recorder
        self._lock = Lock()
        self._watched = _watched(served.now)
        self._watched.know(_texts(served.now.searching))
        self._watched.distrust(since - CLOCK_SECONDS)
        self._again_at = self._patience()
        wrong = served.now.searching.stands_in_for
        self.state = FilesFollowed(wrong, stands_in=bool(wrong))
        self.turns = 0
        """How often the state has changed; answers depend on it by their warnings."""
        if wrong:
            LOGGER.warning("the configuration cannot be used, the shipped pipeline answers: %s", wrong[0])
            self._wait_for_mending(self._watched)

    @property
    def amiss(self) -> tuple[str, ...]:
        """Warnings for every answer while the files are broken."""
        if not (wrong := self.state.wrong):
            return ()
        pipeline = self._served.now.searching.runner.pipeline
        told = abridge(str(wrong[0]), TOLD) + (f", and {len(wrong) - 1} more" if wrong[1:] else "")
        if self.state.stands_in:
            until = f"until that is fixed, the shipped '{pipeline.name}' ({pipeline.hash}) answers instead"
            return (f"the configuration cannot be used: {told}; {until}",)
        return (
            f"the configuration was changed and cannot be used: {told}; until that is fixed, "
            f"'{pipeline.name}' ({pipeline.hash}) answers as before",
        )

    def look(self) -> None:
        """Puts changed files in force if they are valid. Never raises for files.

        A request looks once. One thread at a time looks; others continue with the present state.
        """
        if SERVING.has_checked(self):
            return
        SERVING.note_checked(self)
        # Not blocking: a search never waits for another one that reads the files.
        if not self._lock.acquire(blocking=False):
            return
        try:
            if time.monotonic() < self._again_at and not self._watched.changed():
                return
            if self._settled():
                self._read()
        finally:
            self._lock.release()

    def _settled(self) -> bool:
        """Waits a moment for a program that is writing the files; whether it seems to have finished."""
        before = self._watched.stamps()
        for _ in range(MOST_SETTLING):
            if self._watched.age(before, time.time()) > SETTLED_SECONDS:
                return True
            sleep(SETTLED_SECONDS)
            before, earlier = self._watched.stamps(), before
            if before == earlier:
                return True
        return False

    def _read(self) -> None:
        earlier = self._served.now
        # Taken before the files are read: a change during reading is noticed by the next look.
        watched = _watched(earlier)
        try:
            serving = _build_state(earlier, self._recorder)
        except Exception as error:  # a component's constructor may raise anything; the old state is still served
            wrong = problems_of(error)
            if not isinstance(error, SpeckitError):
                LOGGER.warning("the configuration cannot be used", exc_info=error)
        else:
            self._put(serving, watched)
            return
        if wrong != self.state.wrong:
            LOGGER.warning("the configuration cannot be used, the previous one stays in force: %s", wrong[0])
        self._tell(replace(self.state, wrong=wrong))
        self._wait_for_mending(watched)

    def _wait_for_mending(self, watched: WatchedFiles) -> None:
        places = [one.where.file for one in self.state.wrong if one.where]
        watched.look_at(Path(file) for file in places if not file.startswith(SHIPPED))
        self._watched, self._again_at = watched, time.monotonic() + RETRY_SECONDS

    def _put(self, serving: ConfigurationState, watched: WatchedFiles) -> None:
        watched.know(_texts(serving.searching))
        self._watched = watched
        # Texts are compared too: a comment changes the documents that are shown, even if every answer is the same.
        if _state_key(serving) != _state_key(before := self._served.now):
            self._served.put(serving)
        self._again_at = self._patience()
        if _answers(serving) == _answers(before):  # only a comment changed, say, or a fault was reverted
            self._tell(replace(self.state, wrong=(), stands_in=False))
            return
        self._tell(FilesFollowed((), self.state.changes + 1, time.time()))
        pipeline = serving.searching.runner.pipeline
        LOGGER.info("the configuration was read again: '%s' (%s)", pipeline.name, pipeline.hash)

    def _tell(self, state: FilesFollowed) -> None:
        self.state = state
        self.turns += 1

    def _patience(self) -> float:
        """When to read again although no known file has changed: soon, while a variant's file cannot be read."""
        return time.monotonic() + RETRY_SECONDS if self._served.now.searching.unusable else float("inf")


def _build_state(earlier: ConfigurationState, recorder: Recorder) -> ConfigurationState:
    """Builds the state that the files describe. Raises SpeckitError with all of their problems.

    Settings that a store is opened with stay until the process ends: how extensions run, recording, the vector index,
    and links by names.
    """
    config = earlier.settings
    named = config.pipeline if config.pipeline_by == BY_CALL else None
    found = settings(config.db, named, config.root, config.environ)
    now = replace(
        config,
        pipeline=found.pipeline,
        pipeline_by=found.pipeline_by,
        deadline_ms=load_workspace_config(config.root, config.environ).deadline_ms,
    )
    strict = earlier.searching.runner.strict
    searching = Searcher.through(
        now.pipeline, now, now.overrides, strict=strict, extensions=earlier.searching.extensions
    )
    # Unchanged variants keep their running objects, with what they have counted.
    if searching.beside == earlier.searching.beside:
        return ConfigurationState(now, searching, earlier.shadows, earlier.replays)
    return serving_of(now, searching, recorder)


def _answers(serving: ConfigurationState) -> tuple[object, ...]:
    """Equal for two states that give the same answers."""
    config = serving.settings
    return (serving.searching.identity, config.pipeline, config.pipeline_by, config.deadline_ms)


def _state_key(serving: ConfigurationState) -> tuple[object, ...]:
    """Equal for two states that were also read from the same texts."""
    return (_answers(serving), _texts(serving.searching))


def can_be_followed(serving: ConfigurationState) -> bool:
    """Whether files decide the pipeline; false for one that was given as a value."""
    return serving.settings.pipeline_by != BY_VALUE


def _watched(serving: ConfigurationState) -> WatchedFiles:
    root = serving.settings.root
    return WatchedFiles(
        dict.fromkeys([root / PIPELINE_FILE, root / FLAGS_FILE, root / CONFIG_FILE, *_texts(serving.searching)])
    )


def _texts(searching: Searcher) -> dict[Path, str]:
    """The files that a pipeline and its variants were read from, with their texts."""
    return dict(_documents(searching))


def _documents(searching: Searcher) -> Iterator[tuple[Path, str]]:
    pipelines = (searching.checked, *(variant.checked for variant in searching.variants))
    for checked in pipelines:
        for document in checked.effective.documents if checked else ():
            if document.text is not None and not document.file.startswith(SHIPPED):
                yield Path(document.file), document.text
