"""Pipeline files seen from outside: check, show, compare, describe. Nothing here runs a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from speckit_memory.config.extension_modes import Mode
from speckit_memory.config.extensions import extensions_in_force
from speckit_memory.config.pipeline_file import CANDIDATE_SLOTS, SLOTS
from speckit_memory.config.sources import NOTHING, presets
from speckit_memory.engine import assembly
from speckit_memory.engine.pipeline_text import as_lines, as_yaml, step_lines
from speckit_memory.engine.rewriting import rewritten
from speckit_memory.engine.yaml_flow import flow_style
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.pipeline.builder import Checked, examine
from speckit_memory.pipeline.schema import file_schema


def _sound(source: str, environ: Mapping[str, str], overrides: Mapping[str, str] | None = None) -> Checked:
    """A pipeline without problems. Raises SpeckitError."""
    checked = examine(source, assembly.registry(environ), environ, overrides)
    if checked.problems:
        raise SpeckitError.of(checked.problems)
    return checked


def check(source: str, environ: Mapping[str, str], overrides: Mapping[str, str] | None = None) -> list[Problem]:
    """Everything that is wrong with a pipeline file or preset, by position."""
    problems = examine(source, assembly.registry(environ), environ, overrides).problems
    return list(SpeckitError.of(problems).problems) if problems else []


def show(
    source: str,
    environ: Mapping[str, str],
    overrides: Mapping[str, str] | None = None,
    *,
    effective: bool = False,
    origin: bool = False,
) -> str:
    """A pipeline as YAML that inherits nothing: with what its files say, or with every value filled in (`effective`).

    With `origin` each value, key by key, says in a comment where it comes from. Another comment tells the steps that
    installed extensions offer, and where these run. Raises SpeckitError when the file has problems.
    """
    checked = _sound(source, environ, overrides)
    remark = _foreign(checked, extensions_in_force(environ).mode)
    if origin:
        remark += _flags(checked)
    return remark + as_yaml(checked, effective=effective, origin=origin)


def _flags(checked: Checked) -> str:
    """The flags that steps of the pipeline wait for, with who decided on their states."""
    effective = checked.effective
    named = dict.fromkeys(step.flag for step in (*effective.steps(), *effective.inactive) if step.flag)
    flags = (effective.flags[name] for name in named)
    return "".join(f"# flag {flag.name}: {flag.state} ({flag.origin})\n" for flag in flags)


def _foreign(checked: Checked, mode: Mode) -> str:
    steps: dict[str, list[str]] = {}
    for entry in checked.bound:
        if entry.registered is not None and entry.registered.extension:
            steps.setdefault(entry.registered.extension, []).append(entry.step.id)
    return "".join(f"# of the extension {name} ({mode}): {', '.join(ids)}\n" for name, ids in steps.items())


def written(
    source: str,
    environ: Mapping[str, str],
    overrides: Mapping[str, str],
    *,
    name: str,
    heading: Sequence[str],
    remarks: Mapping[str, Sequence[str]],
) -> str:
    """A pipeline file of its own with `overrides` applied, under another name.

    It is the file as it was written, comments and all, with the changed values in their places. Where that cannot be,
    as for steps that a file inherits, it is written anew and says all of the pipeline. `heading` stands at its top and
    `remarks`, by step id, above the steps, all as comments. Raises SpeckitError when the pipeline has problems.
    """
    checked = _sound(source, environ, overrides)
    bound = examine(source, assembly.registry(environ), environ).bound
    present = {e.step.id: e.params.model_dump(mode="json", by_alias=True) for e in bound if e.params is not None}
    in_place = rewritten(source, overrides, present, name=name, heading=heading, remarks=remarks)
    if in_place is not None and _is(in_place, checked.hash, environ):
        return in_place
    effective = checked.effective
    lines = [*(f"# {line}".rstrip() for line in heading), f"pipeline: {flow_style(name)}"]
    if effective.description:
        lines.append(f"description: {flow_style(effective.description)}")
    lines += [f"extends: {NOTHING}", f"budgets_ms: {flow_style(effective.budgets_ms)}", "candidates:"]
    for slot in SLOTS:
        pad = "  " if slot in CANDIDATE_SLOTS else ""
        steps = [entry for entry in checked.bound if entry.step.slot == slot]
        lines.append(f"{pad}{slot}:" if steps else f"{pad}{slot}: []")
        for entry in steps:
            lines += [f"{pad}  # {remark}" for remark in remarks.get(entry.step.id, ())]
            lines += step_lines(entry, pad, effective=False, origin=False)
    return "\n".join(lines) + "\n"


def _is(text: str, pipeline_hash: str, environ: Mapping[str, str]) -> bool:
    """Whether a text is the pipeline of this hash."""
    with TemporaryDirectory(prefix="speckit-pipeline-") as folder:
        file = Path(folder) / "written.yaml"
        file.write_text(text, encoding="utf-8")
        checked = examine(str(file), assembly.registry(environ), environ)
    return not checked.problems and checked.hash == pipeline_hash


def diff(a: str, b: str, environ: Mapping[str, str]) -> str:
    """What differs between two effective pipelines, as a unified diff; empty when they would do the same.

    Every value has a line of its own, named as `--set` names it.
    """
    before, after = (as_lines(_sound(source, environ)) for source in (a, b))
    return "\n".join(unified_diff(before, after, fromfile=a, tofile=b, lineterm="", n=1))


def schema() -> dict[str, Any]:
    """The JSON Schema of pipeline files, for completion and checks in editors."""
    return file_schema(assembly.registry(), presets())


def plain_values(source: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Every parameter that is one number, word or switch, as "step.parameter", with its value as YAML text.

    Raises SpeckitError when the file has problems.
    """
    checked = examine(source, assembly.registry(environ), environ)
    if checked.problems:
        raise SpeckitError.of(checked.problems)
    steps = {e.step.id: e.params.model_dump(mode="json", by_alias=True) for e in checked.bound if e.params is not None}
    return {
        f"{step}.{name}": flow_style(value)
        for step, params in steps.items()
        for name, value in params.items()
        if not isinstance(value, dict | list)
    }
