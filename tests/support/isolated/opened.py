"""A store searched through extensions in a process of their own, in the process of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

from speckit_memory.config.workspace.settings import settings
from speckit_memory.engine import Memory, components
from speckit_memory.engine.recording.recorder import Recorder
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.runtime.text_models import TextModels
from speckit_memory.engine.search.searcher import Searcher
from speckit_memory.engine.serving.serving import ConfigurationState
from speckit_memory.engine.session.reopening import ReopeningStore
from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.pipeline.configuration.builder import build
from speckit_memory.pipeline.isolation.extensions import IsolatedExtensions
from speckit_memory.pipeline.isolation.host import Host
from speckit_memory.pipeline.roles.registry import Registry
from speckit_memory.pipeline.running.runner import Runner

MEMORY_MB = 512
"""Enough for what the tests do, and soon used up."""


def isolating(host: Host) -> Registry:
    """The product's components, with those of installed extensions in the host's process."""
    registry = Registry()
    for role, component in components.COMPONENTS:
        registry.admit(role, component)
    registry.add_elsewhere(IsolatedExtensions(host))
    return registry


def trusting() -> Registry:
    """The same with the extensions in this process."""
    registry = Registry()
    for role, component in components.COMPONENTS:
        registry.admit(role, component)
    registry.add_entry_points()
    return registry


@contextmanager
def hosting(memory_mb: int = MEMORY_MB) -> Iterator[Host]:
    """A host that may be started as often as a test makes its process end."""
    hours = count(step=3600)
    host = Host(memory_mb, clock=lambda: float(next(hours)))
    yield host
    host.end()


@contextmanager
def opened(root: Path, pipeline: Path | str, registry: Registry) -> Iterator[Memory]:
    """The indexed workspace, searched through a pipeline."""
    config = replace(settings(root / "memory.db", str(pipeline), root, {}), deadline_ms=None)
    runner = Runner(build(config.pipeline, registry, {}))
    models = TextModels({})

    def store(create: bool) -> OpenStore:
        recorder = Recorder(config.db, config.recording)
        return OpenStore(Database.open(config.db, create=create), root, models, recorder)

    with Memory(
        StoreSession(ReopeningStore(store, create=False), ConfigurationState(config, Searcher(runner, config)))
    ) as memory:
        yield memory
