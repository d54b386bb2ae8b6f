"""The single entry point for pipelines: turns any source into an effective pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from speckit_memory.config.flags.flags import Offered, nothing_offered
from speckit_memory.config.pipelines.document import GIVEN, ConfigDocument, Source, name_of_path, read
from speckit_memory.pipeline.configuration.effective import Effective, fill_document
from speckit_memory.pipeline.configuration.variants import with_values

PipelineSource = Source | Effective
"""Anything from which a pipeline can be made: a preset name, a path, a mapping in the form of a file, or a value."""


def name_of(source: PipelineSource) -> str:
    """The name of a source for messages about the pipeline in use."""
    match source:
        case Effective(documents=documents):
            return documents[0].source
        case ConfigDocument():
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

    Args:
        source: A preset name, a path, a mapping, a document, or an effective pipeline.
        environ: Environment variables that set flags; ignored for an effective pipeline, whose flags are already set.
        overrides: YAML text by "step.parameter" or "step.parameter.key".
        offered: Yields the flags of extensions, for flags that the product does not declare.

    Raises:
        SpeckitError: Only if there is nothing to read at all.
    """
    whole = source if isinstance(source, Effective) else fill_document(read(source), environ, offered)
    return with_values(whole, overrides or {})
