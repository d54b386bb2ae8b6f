"""Pipeline files seen from outside: check, show, compare, describe. Nothing here runs a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from config.errors import Problem, SpeckitError
from config.pipeline_file import CANDIDATE_SLOTS, SLOTS, Step
from config.sources import presets
from config.yaml_reader import plain
from engine import assembly
from engine.flow import flow
from engine.rewriting import rewritten
from pipeline.binding import Bound
from pipeline.builder import Checked, examine
from pipeline.contracts import SLOT_ROLES
from pipeline.schema import file_schema


def check(source: str, environ: Mapping[str, str], overrides: Mapping[str, str] | None = None) -> list[Problem]:
    """Everything that is wrong with a pipeline file or preset, by position."""
    problems = examine(source, assembly.registry(), environ, overrides).problems
    return list(SpeckitError.of(problems).problems) if problems else []


def show(
    source: str,
    environ: Mapping[str, str],
    overrides: Mapping[str, str] | None = None,
    *,
    effective: bool = False,
    origin: bool = False,
) -> str:
    """A pipeline as YAML: as it was written, or with every default filled in.

    With `origin` each value says in a comment where it comes from. Raises SpeckitError when the file has problems.
    """
    checked = examine(source, assembly.registry(), environ, overrides)
    if checked.problems:
        raise SpeckitError.of(checked.problems)
    lines = [f"# hash: {checked.hash}", f"pipeline: {checked.effective.name}"]
    lines.append(f"budgets_ms: {flow(checked.effective.budgets_ms)}")
    by_slot = {slot: [entry for entry in checked.bound if entry.step.slot == slot] for slot in SLOTS}
    lines.append("candidates:")
    for slot in SLOTS:
        indent = 2 if slot in CANDIDATE_SLOTS else 0
        lines += _section(slot, by_slot[slot], checked, indent, effective, origin)
    for step in checked.effective.inactive:
        lines.append(
            f"# not active: {step.slot}: {step.id} (use: {step.use}, flag: {step.flag or 'none'}; {step.where})"
        )
    return "\n".join(lines) + "\n"


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
    checked = examine(source, assembly.registry(), environ, overrides)
    if checked.problems:
        raise SpeckitError.of(checked.problems)
    bound = examine(source, assembly.registry(), environ).bound
    present = {e.step.id: e.params.model_dump(mode="json", by_alias=True) for e in bound if e.params is not None}
    in_place = rewritten(source, overrides, present, name=name, heading=heading, remarks=remarks)
    if in_place is not None and _is(in_place, checked.hash, environ):
        return in_place
    effective = checked.effective
    lines = [*(f"# {line}".rstrip() for line in heading), f"pipeline: {flow(name)}"]
    if effective.description:
        lines.append(f"description: {flow(effective.description)}")
    lines += [f"budgets_ms: {flow(effective.budgets_ms)}", "candidates:"]
    for slot in SLOTS:
        pad = "  " if slot in CANDIDATE_SLOTS else ""
        steps = [entry for entry in checked.bound if entry.step.slot == slot]
        lines.append(f"{pad}{slot}:" if steps else f"{pad}{slot}: []")
        for entry in steps:
            lines += [f"{pad}  # {remark}" for remark in remarks.get(entry.step.id, ())]
            lines += _step(entry, checked, pad, effective=False, origin=False)
    return "\n".join(lines) + "\n"


def _is(text: str, pipeline_hash: str, environ: Mapping[str, str]) -> bool:
    """Whether a text is the pipeline of this hash."""
    with TemporaryDirectory(prefix="speckit-pipeline-") as folder:
        file = Path(folder) / "written.yaml"
        file.write_text(text, encoding="utf-8")
        checked = examine(str(file), assembly.registry(), environ)
    return not checked.problems and checked.hash == pipeline_hash


def diff(a: str, b: str, environ: Mapping[str, str]) -> str:
    """What differs between two effective pipelines, as a unified diff; empty when they would do the same."""
    before, after = (show(source, environ, effective=True).splitlines()[2:] for source in (a, b))
    return "\n".join(unified_diff(before, after, fromfile=a, tofile=b, lineterm="", n=1))


def schema() -> dict[str, Any]:
    """The JSON Schema of pipeline files, for completion and checks in editors."""
    return file_schema(assembly.registry(), presets())


def plain_values(source: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Every parameter that is one number, word or switch, as "step.parameter", with its value as YAML text.

    Raises SpeckitError when the file has problems.
    """
    checked = examine(source, assembly.registry(), environ)
    if checked.problems:
        raise SpeckitError.of(checked.problems)
    steps = {e.step.id: e.params.model_dump(mode="json", by_alias=True) for e in checked.bound if e.params is not None}
    return {
        f"{step}.{name}": flow(value)
        for step, params in steps.items()
        for name, value in params.items()
        if not isinstance(value, dict | list)
    }


def components() -> list[dict[str, str]]:
    """Every component with its role, its place in the file and what it is for."""
    return [
        {
            "name": entry.name,
            "role": str(entry.role),
            "slot": next(slot for slot, roles in SLOT_ROLES.items() if entry.role in roles),
            "features": ", ".join(entry.about.features),
            "summary": entry.summary,
        }
        for entry in assembly.registry()
    ]


def _section(
    slot: str, entries: list[Bound], checked: Checked, indent: int, effective: bool, origin: bool
) -> list[str]:
    pad = " " * indent
    if not entries:
        return [f"{pad}{slot}: []"]
    return [f"{pad}{slot}:", *(line for entry in entries for line in _step(entry, checked, pad, effective, origin))]


def _step(entry: Bound, checked: Checked, pad: str, effective: bool, origin: bool) -> list[str]:
    step = entry.step
    head: dict[str, Any] = {"use": step.use}
    if step.id != step.use:
        head["id"] = step.id
    if step.optional:
        head["optional"] = True
    if step.flag:
        head["flag"] = step.flag
    written = {item.key: plain(item.value) for item in step.params.entries}
    params = written
    if effective and entry.params is not None:
        params = entry.params.model_dump(mode="json", by_alias=True)
    if not origin:
        return [f"{pad}  - {flow(head | params)}"]
    lines = [f"{pad}  - use: {step.use}  # {step.where}"]
    lines += [f"{pad}    {key}: {flow(value)}" for key, value in head.items() if key != "use"]
    for key, value in params.items():
        lines.append(f"{pad}    {key}: {flow(value)}  # {_origin(step, key, checked)}")
    return lines


def _origin(step: Step, key: str, checked: Checked) -> str:
    if (step.id, key) in checked.effective.overridden:
        return "this call"
    item = step.params.get(key)
    return str(item.where) if item else f"default of {step.use}"
