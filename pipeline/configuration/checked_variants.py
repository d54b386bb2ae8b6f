"""The variants of a pipeline with all problems of the variants and of their definitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.pipeline.configuration.builder import CheckedPipeline, assemble, check_pipeline
from speckit_memory.pipeline.configuration.variants import Variant, variants_of
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
