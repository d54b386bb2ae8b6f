"""Remarks on pipeline settings that are valid but probably unintended (feature P7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from speckit_memory.config.pipelines.document import read
from speckit_memory.config.pipelines.layering import slots_of
from speckit_memory.config.pipelines.pipeline_file import StepEntry
from speckit_memory.config.pipelines.sources import DEFAULT, NOTHING, SHIPPED
from speckit_memory.errors import Where
from speckit_memory.pipeline.configuration.effective import Effective

WEIGHTS = "weights"


@dataclass(frozen=True, slots=True)
class Lint:
    """A remark on a position in a pipeline file."""

    where: Where
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


def lints(effective: Effective) -> list[Lint]:
    """The remarks on settings in the file itself, by position."""
    own = () if effective.file.startswith(SHIPPED) else tuple(_lost_values(effective))
    return sorted(own, key=lambda lint: lint.where)


def _lost_values(effective: Effective) -> Iterator[Lint]:
    """Steps that replace one with the same component and silently lose the values that were set there.

    A pipeline that extends nothing restates the shipped one; only lost weights are reported then.
    """
    alone = effective.documents[0].said.extends == NOTHING
    below = [read(DEFAULT)] if alone else effective.documents[1:]
    for slot, inherited in slots_of([document.said for document in below], []).items():
        present = {(step.id, step.use) for step in effective.listed[slot] if step.where.file != effective.file}
        restated = [step for step in effective.listed[slot] if step.where.file == effective.file]
        for step in restated:
            replaced = next((one for one in inherited if _gives_way(one, step, present, alone)), None)
            if replaced is None:
                continue
            said = {entry.key for entry in step.params.entries}
            lost = [entry.key for entry in replaced.params.entries if entry.key not in said]
            if values := ", ".join(f"'{key}'" for key in lost if key == WEIGHTS or not alone):
                message = f"'{step.id}' uses the component's defaults of {values}, which the step '{replaced.id}' sets "
                message += f"({replaced.where}); set them here, or change that step: change: [{{id: {replaced.id}}}]"
                yield Lint(step.where, message)


def _gives_way(below: StepEntry, step: StepEntry, present: set[tuple[str, str]], alone: bool) -> bool:
    """Whether a step takes the place of the one below, which has the same component."""
    same = below.use == step.use and not below.flags and (alone or below.id != step.id)
    return same and (step.replaces == below.id or (below.id, below.use) not in present)
