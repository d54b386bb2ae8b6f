"""Renders pipelines as text: as a file that can be read back, and as lines for a diff."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from speckit_memory.config.pipelines.document import place_in
from speckit_memory.config.pipelines.pipeline_file import CANDIDATE_SLOTS, SLOTS
from speckit_memory.config.pipelines.shadow_entries import MODES
from speckit_memory.config.pipelines.sources import NOTHING
from speckit_memory.config.yaml.editor import flow_style
from speckit_memory.config.yaml.reader import MappingEntry, YamlMapping, plain
from speckit_memory.errors import Where
from speckit_memory.pipeline.configuration.binding import BoundParameters
from speckit_memory.pipeline.configuration.builder import CheckedPipeline
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.overrides import BY_CALL


def as_yaml(
    checked: CheckedPipeline,
    *,
    heading: Sequence[str] = (),
    remarks: Mapping[str, Sequence[str]] = MappingProxyType({}),
    effective: bool = False,
    origin: bool = False,
) -> str:
    """A pipeline without problems as a file that inherits nothing.

    Args:
        checked: The pipeline.
        heading: Comment lines at the top.
        remarks: Comment lines above steps, by step id.
        effective: Write every value, defaults included.
        origin: Add to each value a comment that says where it was written.
    """
    whole = checked.effective
    lines = [*(f"# {line}".rstrip() for line in heading), f"pipeline: {flow_style(whole.name)}"]
    if whole.description:
        lines.append(f"description: {flow_style(whole.description)}")
    lines += [f"extends: {NOTHING}", *_shadow_lines(whole), *_budgets(whole, origin), "candidates:"]
    for slot in SLOTS:
        pad = "  " if slot in CANDIDATE_SLOTS else ""
        steps = [entry for entry in checked.bound if entry.step.slot == slot]
        lines.append(f"{pad}{slot}:" if steps else f"{pad}{slot}: []")
        for entry in steps:
            lines += [f"{pad}  # {remark}" for remark in remarks.get(entry.step.id, ())]
            lines += _step_lines(entry, pad, effective=effective, origin=origin)
    for step in whole.inactive:
        lines.append(f"# not active: {step.slot}: {step.id} (use: {step.use}, flag: {step.waits_for}; {step.where})")
    if origin:
        lines += [f"# dropped: {one.name}, whose channel is not active ({one.where})" for one in checked.released]
    return "\n".join(lines) + "\n"


def _step_lines(entry: BoundParameters, pad: str, *, effective: bool, origin: bool) -> list[str]:
    """A step of a list at this indentation; `effective` and `origin` as for the pipeline."""
    step = entry.step
    head: dict[str, Any] = {"use": step.use}
    if step.id != step.use:
        head["id"] = step.id
    if step.optional:
        head["optional"] = True
    if step.flags:
        head["flag"] = step.flags[0] if len(step.flags) == 1 else list(step.flags)
    written = {item.key: plain(item.value) for item in step.params.entries}
    params = written
    if effective and entry.params is not None:
        params = entry.params.model_dump(mode="json", by_alias=True)
    if not origin:
        return [f"{pad}  - {flow_style(head | params)}"]
    # a step that is changed by its id takes its component from the file that is extended
    use = step.place("use")
    lines = [f"{pad}  - use: {step.use}  # {step.where if use.file == step.where.file else use}"]
    for key, value in head.items():
        if key != "use":
            lines.append(f"{pad}    {key}: {flow_style(value)}  # {step.place(key)}")
    for key, value in params.items():
        lines += _with_origin(key, value, step.params.get(key), f"{pad}    ", f"default of {step.use}")
    return lines


def _with_origin(key: str, value: Any, written: MappingEntry | None, pad: str, default: str) -> Iterator[str]:
    """A value, key by key, each with the place where it was written."""
    if isinstance(value, dict) and value:
        yield f"{pad}{flow_style(key)}:"
        inside = written.value if written else None
        for inner, item in value.items():
            below = inside.get(inner) if isinstance(inside, YamlMapping) else None
            yield from _with_origin(inner, item, below, f"{pad}  ", default)
    else:
        origin = _describe_place(written.value.where) if written else default
        yield f"{pad}{flow_style(key)}: {flow_style(value)}  # {origin}"


def _describe_place(where: Where) -> str:
    return "this call" if where.file.startswith(BY_CALL) else str(where)


def _shadow_lines(whole: Effective) -> Iterator[str]:
    """The shadow entries, with absolute paths, as the text may be stored in another folder."""
    for key, mode in MODES.items():
        entries = [entry for entry in whole.beside if entry.mode == mode]
        if entries:
            yield f"{key}:"
        for entry in entries:
            use = place_in(entry.where.file, entry.use)
            said = {"use": use, "name": entry.name, "sample": entry.sample, "interleave": entry.interleave}
            default = {"name": "", "sample": 1.0, "interleave": False}
            yield f"  - {flow_style({name: value for name, value in said.items() if value != default.get(name)})}"


def _budgets(effective: Effective, origin: bool) -> list[str]:
    if not origin:
        return [f"budgets_ms: {flow_style(effective.budgets_ms)}"]
    places = effective.budget_places
    return [
        "budgets_ms:",
        *(f"  {k}: {flow_style(v)}  # {places.get(k, 'default')}" for k, v in effective.budgets_ms.items()),
    ]


def as_lines(checked: CheckedPipeline) -> list[str]:
    """One line for each step and each effective value, named as by `--set`; for comparisons."""
    lines = list(_name_lines("budgets_ms", checked.effective.budgets_ms))
    for slot in SLOTS:
        lines.append(f"{slot}:")
        for entry in checked.bound:
            if entry.step.slot == slot and entry.params is not None:
                optional = ", optional" if entry.step.optional else ""
                lines.append(f"  {entry.step.id} (use: {entry.step.use}{optional})")
                for key, value in entry.params.model_dump(mode="json", by_alias=True).items():
                    lines += _name_lines(f"    {entry.step.id}.{key}", value)
    return lines


def _name_lines(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _name_lines(f"{name}.{key}", item)
    else:
        yield f"{name}: {flow_style(value)}"
