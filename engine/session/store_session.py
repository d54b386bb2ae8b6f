"""One user's access to an open store and to the configuration in force: what the services of a memory share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Self, TypeVar

from speckit_memory.config.pipelines.sources import DEFAULT
from speckit_memory.config.workspace.settings import BY_CALL, BY_VALUE, SHIPPED, Settings, settings
from speckit_memory.config.workspace.store_address import Replicas
from speckit_memory.config.workspace.workspace_file import load_workspace_config
from speckit_memory.engine.recording.recorder import Recorder
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.runtime.text_models import TextModels
from speckit_memory.engine.search.searcher import Searcher
from speckit_memory.engine.serving.serving import ActiveConfiguration, ConfigurationState, problems_of
from speckit_memory.engine.serving.start_shadows import serving_of
from speckit_memory.engine.session.reopening import ReopeningStore
from speckit_memory.engine.upkeep.upkeep_thread import MaintenanceThread
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.identity import ReplacedError
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.pipeline.configuration.loading import PipelineSource, name_of
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.running.view import StoreView

if TYPE_CHECKING:
    from speckit_memory.engine.serving.reloading import Reloading

T = TypeVar("T")


@dataclass(slots=True)
class _Users:
    """The number of sessions of a store that have not ended."""

    count: int = 1
    guard: Lock = field(default_factory=Lock)


class StoreSession:
    """A counted reference to an open store, which is closed with the last one, together with a configuration."""

    files: Reloading | None = None
    """Follows the files of the configuration; None if they are not followed."""

    def __init__(self, store: ReopeningStore, state: ConfigurationState, users: _Users | None = None) -> None:
        """The first reference to a store; `another` makes further ones."""
        self._store = store
        self._users = users or _Users()
        self._ended = False
        self.configuration = ActiveConfiguration(state)

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        pipeline: PipelineSource | None = None,
        *,
        root: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
        create: bool = True,
        strict: bool = False,
        overrides: Mapping[str, str] | None = None,
        shadows: bool = True,
        stand_in: bool = False,
    ) -> Self:
        """Opens a store, creating it unless `create` is false.

        If another file takes the store's path, or its contents are set back, the new file is opened and served.

        Args:
            path: The store's file; default: the environment, then `.speckit/memory.db`.
            pipeline: A path, a preset name, a mapping in the form of a pipeline file, or a pipeline that was loaded
                already; default: the environment, then `.speckit/pipeline.yaml`, then the shipped pipeline.
            root: The folder that keys are relative to.
            environ: Environment variables; default: those of the process.
            create: Create a missing store, now or later when a deleted file is written to.
            strict: Run components under the strict guard and raise failures of steps (tests).
            overrides: "step.parameter" to a YAML value.
            shadows: Run the configured variants and record searches; false turns both off.
            stand_in: Serve the shipped pipeline if the configured one cannot be used.

        Raises:
            SpeckitError: The store or the configuration cannot be used; lists all problems.
        """
        config = settings(path, None, root, environ)
        source: PipelineSource = config.pipeline
        if pipeline is not None and pipeline != "":
            source, config = pipeline, _chosen(config, pipeline)
        # read the files first: an invalid one must be reported before a store is created
        in_force = load_workspace_config(config.root, config.environ)
        config = replace(
            config,
            deadline_ms=in_force.deadline_ms,
            overrides=overrides or {},
            recording=in_force.evaluation,
            vector_index=in_force.vector_index,
            entities=in_force.entities,
        )
        searching, config = _chosen_or_shipped(source, config, strict=strict, stand_in=stand_in)
        models, recorder = TextModels(config.environ), Recorder(config.db, config.recording)

        replicas = Replicas(in_force.read_from, in_force.read_lag_seconds)

        def opened(may_create: bool) -> OpenStore:
            database = Database.open(config.db, create=may_create, replicas=replicas)
            return OpenStore(database, config.root, models, recorder, config.vector_index, config.entities)

        store = ReopeningStore(opened, create=create, measured=not shadows)
        state = serving_of(config, searching, recorder) if shadows else ConfigurationState(config, searching)
        return cls(store, state)

    def read(self, work: Callable[[OpenStore], T]) -> T:
        """Runs an operation on the store that is at the path when the operation ends; it may be repeated.

        Raises E024 for a failure that is due to a damaged file, and any exception of `work`.
        """
        return self.store.run(work)

    def write(self, work: Callable[[OpenStore], T], *, create: bool = False, repeatable: bool = True) -> T:
        """Runs an operation that changes the store.

        Args:
            work: The operation.
            create: Create the file again if it is gone and may be created.
            repeatable: Whether the operation may be repeated if the store was replaced; false for changes by id.

        Raises:
            SpeckitError: As `read`, and E026 if the store was replaced and the operation cannot be repeated.
        """
        return self.store.run(work, writes=create, repeatable=repeatable)

    def get(self, name: int | str) -> MemoryRecord:
        """A memory by id or key. Raises E080."""
        return self.read(lambda opened: reader.get_memory(opened.database.reader(), name))

    def view(self) -> Store:
        """The current state of the store, as the pipeline sees it; it stays on one state until something is written."""
        return StoreView(self.read(lambda opened: opened.read_model.current()))

    @property
    def store(self) -> ReopeningStore:
        """The store, reopened after a replacement. Raises E027 after `end`."""
        if self._ended:
            raise self._closed()
        return self._store

    @property
    def opened(self) -> OpenStore:
        """The store that was opened last; its file may have been replaced since."""
        return self.store.current

    @property
    def database(self) -> Database:
        """The store's file."""
        return self.opened.database

    @property
    def upkeep(self) -> MaintenanceThread:
        """The background work on the store, which is notified of searches and changes."""
        return self.store.upkeep

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.configuration.now.settings

    @property
    def root(self) -> Path:
        """The folder of the workspace, which keys are relative to."""
        return self.settings.root

    @property
    def searcher(self) -> Searcher:
        """The pipeline in force, ready to search."""
        return self.configuration.now.searching

    def create_again(self) -> None:
        """Creates the store's file again if it was deleted. Raises as opening a store does."""
        opened = self.opened
        try:
            opened.database.latest()
        except ReplacedError as why:
            self.store.open_anew(opened, why, create=True)

    def another(self, state: ConfigurationState) -> StoreSession:
        """A further, independent session of the same store. Raises E027 after `end`."""
        with self._users.guard:
            if self._ended:
                raise self._closed()
            self._users.count += 1
        return StoreSession(self._store, state, self._users)

    def using(self, pipeline: PipelineSource, overrides: Mapping[str, str] | None = None) -> StoreSession:
        """A further session of the same store, through another pipeline. Raises its problems, and E027."""
        config = replace(_chosen(self.settings, pipeline), overrides=overrides or {})
        searching = Searcher.through(pipeline, config, overrides, strict=self.searcher.runner.strict)
        return self.another(ConfigurationState(config, searching))

    def end(self) -> None:
        """Ends this session. Raises E022 if it is the last one and a thread is running a query; try again then."""
        with self._users.guard:
            if not self._ended:
                self._ended = True
                self._users.count -= 1
            last = not self._users.count
        if last:
            self._store.close()

    def _closed(self) -> SpeckitError:
        return SpeckitError("E027", f"this Memory of {self._store.current.database.path} has been closed")


def _chosen_or_shipped(
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


def _chosen(config: Settings, pipeline: PipelineSource) -> Settings:
    """The settings with the pipeline that a call names."""
    by = BY_CALL if isinstance(pipeline, str | Path) else BY_VALUE
    return replace(config, pipeline=name_of(pipeline), pipeline_by=by)
