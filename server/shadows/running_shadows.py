"""The pipelines in force at a store, the served one and its shadows, by hash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from speckit_memory.config.workspace.settings import settings
from speckit_memory.engine import components
from speckit_memory.engine.pipelines.pipeline_text import as_lines
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.experiments.experiments import PipelineLabel
from speckit_memory.pipeline.configuration.builder import CheckedPipeline, examined
from speckit_memory.pipeline.configuration.loading import load
from speckit_memory.pipeline.configuration.variants import variants_of


@dataclass(frozen=True, slots=True)
class CurrentPipelines:
    """The served pipeline and its shadows, by hash; empty if they cannot be read."""

    names: Mapping[str, PipelineLabel]
    pipelines: Mapping[str, CheckedPipeline]

    def difference(self, control: str, variant: str) -> list[str] | None:
        """The lines of a diff between two pipelines; None if one of them is no longer in force."""
        if not {control, variant} <= set(self.pipelines):
            return None
        before, after = (as_lines(self.pipelines[one]) for one in (control, variant))
        lines = list(unified_diff(before, after, lineterm="", n=0))[2:]
        return [line for line in lines if not line.startswith("@@")]


def current_pipelines(store: Path) -> CurrentPipelines:
    """The pipelines in force at a store."""
    config = settings(store)
    environ = config.environ_of_root
    try:
        registry = components.registry(environ, config.root)
        control = load(config.pipeline, environ, offered=registry.flag_files)
        variants = variants_of(control, environ, registry.flag_files)
        checked = [examined(one, registry) for one in (control, *(one.effective for one in variants))]
    except SpeckitError:
        return CurrentPipelines({}, {})
    names = [PipelineLabel(control.name), *(PipelineLabel(one.name, one.flag) for one in variants)]
    # reversed, so that on equal hashes the first pipeline (the control) wins
    found = {one.hash: (name, one) for name, one in reversed(list(zip(names, checked, strict=True)))}
    return CurrentPipelines(
        {key: name for key, (name, _) in found.items()}, {key: one for key, (_, one) in found.items()}
    )
