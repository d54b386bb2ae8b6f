"""Checks, shows, compares and describes pipeline files. Runs no query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import unified_diff
from os.path import relpath
from pathlib import Path
from typing import Any

from speckit_memory.config.pipelines.document import ConfigDocument, read_text
from speckit_memory.config.pipelines.sources import presets
from speckit_memory.config.workspace.options import Mode
from speckit_memory.config.workspace.workspace_file import extensions_in_force
from speckit_memory.config.yaml.editor import flow_style
from speckit_memory.engine import components
from speckit_memory.engine.pipelines.pipeline_text import as_lines, as_yaml
from speckit_memory.engine.pipelines.rewriting import extending, rewritten
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.pipeline.configuration.builder import CheckedPipeline, examine
from speckit_memory.pipeline.configuration.checked_variants import CheckedVariant, checked_variants, rollouts
from speckit_memory.pipeline.configuration.lints import lints
from speckit_memory.pipeline.configuration.loading import PipelineSource, load, name_of
from speckit_memory.pipeline.configuration.schema import file_schema
from speckit_memory.pipeline.configuration.variants import waiting_flags


def _examined(
    source: PipelineSource, environ: Mapping[str, str], overrides: Mapping[str, str] | None = None
) -> tuple[CheckedPipeline, tuple[CheckedVariant, ...], list[Problem]]:
    """A pipeline, its variants, and the problems of both."""
    registry = components.registry(environ)
    checked = examine(source, registry, environ, overrides)
    variants, asked_wrongly, unusable = checked_variants(checked, registry, environ)
    problems = [*asked_wrongly, *unusable]
    _, misrolled = rollouts(checked, registry)
    return checked, variants, [*checked.problems, *problems, *misrolled]


def _sound(
    source: PipelineSource, environ: Mapping[str, str], overrides: Mapping[str, str] | None = None
) -> tuple[CheckedPipeline, tuple[CheckedVariant, ...]]:
    """A pipeline without problems, and its variants. Raises SpeckitError."""
    checked, variants, problems = _examined(source, environ, overrides)
    if problems:
        raise SpeckitError.of(problems)
    return checked, variants


def check(
    source: PipelineSource, environ: Mapping[str, str], overrides: Mapping[str, str] | None = None
) -> list[Problem]:
    """All problems of a pipeline file or preset and of its variants, by position."""
    _, _, problems = _examined(source, environ, overrides)
    return list(SpeckitError.of(problems).problems) if problems else []


def remarks(source: PipelineSource, environ: Mapping[str, str]) -> list[str]:
    """Lint warnings about a pipeline without problems, each with its place, by position."""
    return [str(lint) for lint in lints(load(source, environ, offered=components.registry(environ).flag_files))]


def show(
    source: PipelineSource,
    environ: Mapping[str, str],
    overrides: Mapping[str, str] | None = None,
    *,
    effective: bool = False,
    origin: bool = False,
) -> str:
    """A pipeline as YAML that inherits nothing.

    Comments at the top list the steps of installed extensions and where they run, and each variant.

    Args:
        source: A path, a preset name, a mapping, or a pipeline that was loaded already.
        environ: Environment variables that decide flags.
        overrides: "step.parameter" to a YAML value.
        effective: Write every value, defaults included.
        origin: Add to each value a comment that says where it was written.

    Raises:
        SpeckitError: All problems of the pipeline.
    """
    checked, variants = _sound(source, environ, overrides)
    heading = [*_foreign(checked, extensions_in_force(environ).mode), *(_flags(checked) if origin else ())]
    heading.append(f"hash: {checked.hash}")
    shares, _ = rollouts(checked, components.registry(environ))
    heading += [f"for {one.percent} % of sessions ({one.checked.hash}): {', '.join(one.flags)}" for one in shares]
    heading += [f"variant {one.variant.name} ({one.checked.hash}): {one.variant.asked_for}" for one in variants]
    return as_yaml(checked, heading=heading, effective=effective, origin=origin)


def _flags(checked: CheckedPipeline) -> Iterator[str]:
    """The flags used by steps of the pipeline, and where their states were decided."""
    effective = checked.effective
    for flag in (effective.flags[name] for name in waiting_flags(effective)):
        yield f"flag {flag.name}: {flag.state} ({flag.origin})"


def _foreign(checked: CheckedPipeline, mode: Mode) -> list[str]:
    steps: dict[str, list[str]] = {}
    for entry in checked.bound:
        if entry.registered is not None and entry.registered.extension:
            steps.setdefault(entry.registered.extension, []).append(entry.step.id)
    return [f"from the extension {name} ({mode}): {', '.join(ids)}" for name, ids in steps.items()]


def pipeline_text_with(
    source: PipelineSource,
    environ: Mapping[str, str],
    overrides: Mapping[str, str],
    *,
    file: Path,
    heading: Sequence[str],
    remarks: Mapping[str, Sequence[str]],
) -> str:
    """The text of a pipeline with `overrides` applied, for storing in `file` under that name.

    The original text is edited in place, comments included, if possible. Otherwise, as for inherited steps, the whole
    pipeline is written anew.

    Args:
        source: The pipeline.
        environ: Environment variables that decide flags.
        overrides: "step.parameter" to a YAML value.
        file: The file that will hold the text.
        heading: Comment lines at the top.
        remarks: Comment lines above steps, by step id.

    Raises:
        SpeckitError: All problems of the pipeline.
    """
    before = replace(load(source, environ, offered=components.registry(environ).flag_files), name=file.stem)
    checked, _ = _sound(before, environ, overrides)
    present = _present(before, environ)
    document = before.documents[0]
    in_place = rewritten(document, overrides, present, name=file.stem, heading=heading, remarks=remarks)
    if in_place is not None and _reads_as(in_place, file, checked, environ):
        return in_place
    return as_yaml(checked, heading=heading, remarks=remarks)


def _reads_as(text: str, file: Path, wanted: CheckedPipeline, environ: Mapping[str, str]) -> bool:
    """Whether the text, stored in this file, is a pipeline without problems that equals `wanted`."""
    again, _, problems = _examined(read_text(text, str(file)), environ)
    return not problems and again.hash == wanted.hash


def _present(source: PipelineSource, environ: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The parameters of each step, defaults included."""
    bound = examine(source, components.registry(environ), environ).bound
    return {e.step.id: e.params.model_dump(mode="json", by_alias=True) for e in bound if e.params is not None}


def extension(
    source: ConfigDocument,
    environ: Mapping[str, str],
    overrides: Mapping[str, str],
    *,
    file: Path,
    heading: Sequence[str],
    remarks: Mapping[str, Sequence[str]],
) -> str:
    """The text of a file that extends a preset or another file with `overrides` alone.

    Falls back to `pipeline_text_with` if the source is neither, or if its contents are not valid from another folder.

    Args:
        source: The pipeline to extend.
        environ: Environment variables that decide flags.
        overrides: "step.parameter" to a YAML value.
        file: The file that will hold the text.
        heading: Comment lines at the top.
        remarks: Comment lines above steps, by step id.

    Raises:
        SpeckitError: All problems of the pipeline.
    """
    checked, _ = _sound(source, environ, overrides)
    present, slots = _present(source, environ), {step.id: step.slot for step in checked.effective.steps()}
    named = source.source in presets()
    below = source.source if named else relpath(source.source, file.parent)
    text = extending(below, overrides, present, slots, name=file.stem, heading=heading, remarks=remarks)
    if (named or Path(source.source).is_file()) and _reads_as(text, file, checked, environ):
        return text
    return pipeline_text_with(source, environ, overrides, file=file, heading=heading, remarks=remarks)


def diff(a: PipelineSource, b: PipelineSource, environ: Mapping[str, str]) -> str:
    """A unified diff of two effective pipelines; empty if they are equivalent.

    Every value is on a separate line, named as by `--set`.
    """
    before, after = (as_lines(_sound(source, environ)[0]) for source in (a, b))
    return "\n".join(unified_diff(before, after, fromfile=name_of(a), tofile=name_of(b), lineterm="", n=1))


def schema() -> dict[str, Any]:
    """The JSON Schema of pipeline files, for completion and checks in editors."""
    return file_schema(components.registry(), presets())


def plain_values(source: PipelineSource, environ: Mapping[str, str]) -> dict[str, str]:
    """Every scalar parameter, as "step.parameter", with its value as YAML text.

    Raises SpeckitError with all problems of the file.
    """
    _sound(source, environ)
    return {
        f"{step}.{name}": flow_style(value)
        for step, params in _present(source, environ).items()
        for name, value in params.items()
        if not isinstance(value, dict | list)
    }
