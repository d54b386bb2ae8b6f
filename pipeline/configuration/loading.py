"""The one door for pipelines: whatever names or holds one becomes an effective pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from speckit_memory.config.flags.flags import Offered, nothing_offered
from speckit_memory.config.pipelines.document import GIVEN, Document, Source, name_of_path, read
from speckit_memory.pipeline.configuration.effective import Effective, filled
from speckit_memory.pipeline.configuration.variants import with_values

PipelineSource = Source | Effective
"""Whatever a pipeline can be made from: the name of a preset, a path, a mapping of the form of a file, or a value."""


def name_of(source: PipelineSource) -> str:
    """How a source was asked for, for whoever tells which pipeline is in use."""
    match source:
        case Effective(documents=documents):
            return documents[0].source
        case Document():
            return source.source
        case Mapping():
            return GIVEN
        case Path():
            return name_of_path(source)
    return source


def load(
    source: PipelineSource,
    environ: Mapping[str, str],
    overrides: Mapping[str, str] | None = None,
    offered: Offered = nothing_offered,
) -> Effective:
    """The effective pipeline of a source. Problems are collected, not raised.

    Raises SpeckitError only when there is nothing to read at all. `overrides` maps "step.parameter" or
    "step.parameter.key" to YAML text. The environment decides flags, but not those of an effective pipeline again.
    `offered` are the flags of extensions, for a flag that is none of ours.
    """
    whole = source if isinstance(source, Effective) else filled(read(source), environ, offered)
    return with_values(whole, overrides or {})
