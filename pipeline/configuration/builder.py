"""Pass 6: build. Turns an effective configuration into a pipeline, or raises one error with all problems."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TypeVar

from speckit_memory.config.pipelines.layering import holds
from speckit_memory.config.pipelines.sources import SHIPPED
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.pipeline.configuration.binding import BoundParameters, bind, of_role
from speckit_memory.pipeline.configuration.context import UnusedChannelRef, settle_parameters, without_left_out
from speckit_memory.pipeline.configuration.declared import construct_component
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.loading import PipelineSource, load
from speckit_memory.pipeline.configuration.rules import check
from speckit_memory.pipeline.configuration.scale_rules import scale_of
from speckit_memory.pipeline.roles.composition import BoundStep, CandidateStage, FusionStage, Pipeline
from speckit_memory.pipeline.roles.hooks import (
    ANNOTATE,
    EVIDENCE,
    FUSE,
    RECOVER,
    RERANK,
    SEARCH,
    UNDERSTAND,
    Method,
)
from speckit_memory.pipeline.roles.registry import Registry

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class CheckedPipeline:
    """An effective configuration, its bound steps and all problems, unordered."""

    effective: Effective
    bound: tuple[BoundParameters, ...]
    problems: tuple[Problem, ...]
    released: tuple[UnusedChannelRef, ...] = ()
    """Inherited references to unused channels, which are dropped."""

    @property
    def hash(self) -> str:
        """Twelve hex digits that identify the steps and budgets in effect, with every default filled in.

        Comments, the order of keys, file names and values that only repeat a default do not matter.
        """
        return _digest({"budgets_ms": self.effective.budgets_ms, "steps": self._steps})

    @property
    def ordering(self) -> str:
        """The same without the budgets: pipelines with equal values give the same answers."""
        return _digest(self._steps)

    @property
    def _steps(self) -> list[list[object]]:
        return [
            [entry.step.slot, entry.step.use, entry.step.id, entry.step.optional, entry.params.model_dump(mode="json")]
            for entry in self.bound
            if entry.params is not None
        ]


def _digest(document: object) -> str:
    return sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:12]


def examine(
    source: PipelineSource, registry: Registry, environ: Mapping[str, str], overrides: Mapping[str, str] | None = None
) -> CheckedPipeline:
    """All passes up to the checks, without raising, for `pipeline check` and `pipeline show`.

    Args:
        source: The pipeline file and its layers.
        registry: The known components.
        environ: Environment variables that override parameters.
        overrides: Values that this call sets.
    """
    return check_pipeline(load(source, environ, overrides, registry.flag_files), registry)


def check_pipeline(effective: Effective, registry: Registry) -> CheckedPipeline:
    """An effective pipeline with its parameters bound and the whole-pipeline rules checked."""
    bound, misbound = bind(effective.steps(), registry)
    _, dormant = bind(effective.inactive, registry)
    bound, released = without_left_out(bound, effective.left_out)
    composition = [_at_home(problem, effective) for problem in check(bound, effective.places)]
    # Problems of unreadable parts are already reported; a second problem at the same place would be a consequence.
    unread = {problem.where for problem in effective.problems if problem.where}
    unbound = [problem for problem in (*misbound, *dormant) if problem.where not in unread]
    return CheckedPipeline(
        effective, tuple(settle_parameters(bound)), (*effective.problems, *unbound, *composition), tuple(released)
    )


def _at_home(problem: Problem, effective: Effective) -> Problem:
    """A problem with an inherited step or value, moved to the user's own file, the only place to fix it."""
    where = problem.where
    if where is None or where.file == effective.file or not where.file.startswith(SHIPPED):
        return problem
    heir = next((step for step in effective.steps() if step.where.file == effective.file and holds(step, where)), None)
    if heir:
        message = f"{problem.message}. That value is inherited from {where}; override it here"
        return replace(problem, message=message, where=heir.where)
    own = [place for place in effective.places.values() if place.file == effective.file]
    message = f"{problem.message}. That step is inherited from {where}; change or remove it here, in its section"
    return replace(problem, message=message, where=min(own, default=effective.documents[0].start))


def build(
    source: PipelineSource, registry: Registry, environ: Mapping[str, str], overrides: Mapping[str, str] | None = None
) -> Pipeline:
    """The pipeline of a source.

    Args:
        source: The pipeline file and its layers.
        registry: The known components.
        environ: Environment variables that override parameters.
        overrides: Values that this call sets.

    Raises:
        SpeckitError: With all problems, ordered by position.
    """
    checked = examine(source, registry, environ, overrides)
    if checked.problems:
        raise SpeckitError.of(checked.problems)
    return assemble(checked)


def assemble(checked: CheckedPipeline) -> Pipeline:
    """The pipeline of a configuration without problems."""
    bound, effective = checked.bound, checked.effective
    return Pipeline(
        name=effective.name,
        hash=checked.hash,
        budgets_ms=effective.budgets_ms,
        candidates=CandidateStage(_steps(UNDERSTAND, bound), _steps(SEARCH, bound), _steps(RECOVER, bound)),
        fusion=FusionStage(_steps(FUSE, bound)[0], _steps(EVIDENCE, bound)),
        rerank=_steps(RERANK, bound),
        annotate=_steps(ANNOTATE, bound),
    )


def _steps(method: Method[C], bound: Iterable[BoundParameters]) -> tuple[BoundStep[C], ...]:
    """The steps, in order, whose role has this method. Raises E131 if a component cannot be constructed."""
    return tuple(_step(method, entry) for entry in of_role(method.roles[0], bound))


def _step(method: Method[C], entry: BoundParameters) -> BoundStep[C]:
    assert entry.registered is not None and entry.params is not None  # without problems, every step is bound
    return BoundStep(
        id=entry.step.id,
        use=entry.step.use,
        component=construct_component(entry, method),
        params=entry.params,
        about=entry.registered.about,
        gives=scale_of(entry),
        optional=entry.step.optional,
    )
