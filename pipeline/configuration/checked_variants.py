"""Pipelines beside a control with all their problems: variants to compare, and percentage rollouts of flags (P11).

A flag remains a difference of structure: every percentage is a separate pipeline, built once. A session always gets the
same one, through every interface.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.pipeline.configuration.builder import CheckedPipeline, assemble, check_pipeline
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.variants import Variant, variants_of, waiting_flags, with_flag
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.roles.registry import Registry


@dataclass(frozen=True, slots=True)
class CheckedVariant:
    """A variant with its steps bound."""

    variant: Variant
    checked: CheckedPipeline

    def built(self) -> Pipeline:
        """The pipeline with the name of the variant. The variant must have no problems."""
        return replace(assemble(self.checked), name=self.variant.name)


def checked_variants(
    control: CheckedPipeline, registry: Registry, environ: Mapping[str, str]
) -> tuple[tuple[CheckedVariant, ...], list[Problem], list[Problem]]:
    """The variants of a control, the problems of their definitions in its file, and the problems of single variants.

    Each problem has its position; a problem of a single variant names that variant. Problems of the control itself are
    not repeated.
    """
    unread: list[Problem] = []
    try:
        variants = variants_of(control.effective, environ, registry.flag_files, unread)
    except SpeckitError as error:
        return (), list(error.problems), unread
    found = tuple(CheckedVariant(variant, check_pipeline(variant.effective, registry)) for variant in variants)
    wrong = [
        replace(problem, message=f"{problem.message} (in the variant '{one.variant.name}': {one.variant.asked_for})")
        for one in found
        for problem in one.checked.problems
        if problem not in control.problems
    ]
    return found, [], [*unread, *wrong]


BUCKETS = 100


def bucket(identity: str) -> int:
    """The bucket of an identity, [0, 100): the same in every process and version.

    h = 31 · h + character, as unsigned 32-bit arithmetic, over the UTF-16 units of the text; then modulo 100.
    """
    value = 0
    units = identity.encode("utf-16-le", "surrogatepass")
    for place in range(0, len(units), 2):
        value = (value * 31 + int.from_bytes(units[place : place + 2], "little")) & 0xFFFFFFFF
    return value % BUCKETS


@dataclass(frozen=True, slots=True)
class Rollout:
    """The pipeline for identities whose bucket is below `percent` but not below that of the previous rollout."""

    percent: int
    flags: tuple[str, ...]
    checked: CheckedPipeline


def rollouts(control: CheckedPipeline, registry: Registry) -> tuple[tuple[Rollout, ...], list[Problem]]:
    """The pipelines of partially enabled flags, smallest percentage first, and their problems.

    A flag is open for identities whose bucket is below its percentage, and closed in the control. Problems of the
    control itself are not repeated.
    """
    found = tuple(_rollouts(control.effective, registry))
    return found, [
        replace(problem, message=f"{problem.message} (with {' and '.join(one.flags)}, for {one.percent} % of sessions)")
        for one in found
        for problem in one.checked.problems
        if problem not in control.problems
    ]


def _rollouts(whole: Effective, registry: Registry) -> Iterator[Rollout]:
    shares = {name: whole.flags[name].percent for name in waiting_flags(whole)}
    partial = {name: percent for name, percent in shares.items() if 0 < percent < BUCKETS}
    for percent in sorted(set(partial.values())):
        names = tuple(name for name, share in partial.items() if share >= percent)
        opened = whole
        for name in names:
            opened = with_flag(opened, name)
        yield Rollout(percent, names, check_pipeline(opened, registry))
