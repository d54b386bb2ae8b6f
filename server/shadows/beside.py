"""What runs beside the served pipeline now, by the hashes that records name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from speckit_memory.config.settings import settings
from speckit_memory.engine import assembly
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.experiments import Called
from speckit_memory.pipeline.builder import examined
from speckit_memory.pipeline.loading import load
from speckit_memory.pipeline.variants import variants_of


def beside(store: Path) -> Mapping[str, Called]:
    """The pipeline that a search of this store uses, and those beside it; none where they cannot be read."""
    config = settings(store)
    environ = config.environ_of_root
    try:
        registry = assembly.registry(environ, config.root)
        control = load(config.pipeline, environ, offered=registry.flag_files)
        variants = variants_of(control, environ, registry.flag_files)
    except SpeckitError:
        return {}
    found = {examined(one.effective, registry).hash: Called(one.name, one.flag) for one in variants}
    return {**found, examined(control, registry).hash: Called(control.name)}
