"""The contract suite: what every component must fulfil. It needs no test framework."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from speckit_memory.pipeline.process.interrupts import call_guarded
from speckit_memory.pipeline.roles.contracts import Role
from speckit_memory.pipeline.roles.registry import RegisteredComponent, Registry
from speckit_memory.pipeline.testing import candidates, scoring
from speckit_memory.pipeline.testing.sample import Sample
from speckit_memory.pipeline.testing.trial import Trial

Values = Mapping[str, object]
"""Parameters as a pipeline file writes them."""
Promise = Callable[[Trial], None]


def component_says_what_it_is(trial: Trial) -> None:
    """The class and every parameter are described in words."""
    trial.must(trial.entry.summary.endswith("."), "needs a docstring whose first line is a sentence")
    undescribed = [name for name, field in trial.entry.params.model_fields.items() if not field.description]
    trial.must(not undescribed, f"has parameters without a description: {', '.join(undescribed)}")


def parameters_are_closed_and_tunable_ranges_are_accepted(trial: Trial) -> None:
    """Unknown parameters are rejected, parameters are frozen, and the ends of tunable ranges are accepted."""
    config = trial.params.model_config
    trial.must(config.get("extra") == "forbid", "accepts unknown parameters")
    trial.must(config.get("frozen"), "has parameters that can be changed")
    values = trial.params.model_dump(by_alias=True)
    for name, field in trial.entry.params.model_fields.items():
        extra = field.json_schema_extra
        bounds = extra.get("tunable") if isinstance(extra, dict) else None
        for bound in bounds if isinstance(bounds, list) else ():
            _, error = call_guarded(partial(trial.entry.params.model_validate, {**values, field.alias or name: bound}))
            trial.must(error is None, f"rejects {bound} for '{name}', an end of the parameter's tunable range: {error}")


OF_ALL: tuple[Promise, ...] = (component_says_what_it_is, parameters_are_closed_and_tunable_ranges_are_accepted)
OF_ROLE: dict[Role, tuple[Promise, ...]] = {
    Role.UNDERSTANDER: (
        candidates.understanding_refines_some_plan_and_repeats_itself,
        candidates.what_a_store_lacks_is_said_and_never_guessed,
    ),
    Role.CHANNEL: (
        candidates.channel_finds_something_and_only_what_the_filter_admits,
        candidates.fewer_hits_are_the_first_of_more_hits,
        candidates.holes_in_the_indexes_change_no_hit,
        candidates.what_a_store_lacks_is_said_and_never_guessed,
    ),
    Role.RECOVERER: (
        candidates.recovery_offers_new_plans_until_it_gives_up,
        candidates.what_a_store_lacks_is_said_and_never_guessed,
    ),
    Role.FUSER: (
        scoring.fuser_names_the_parts_of_every_score,
        scoring.score_of_a_candidate_does_not_depend_on_its_row,
    ),
    Role.SIGNAL: (
        scoring.signal_answers_a_finite_number_per_row_and_tells_some_apart,
        scoring.pools_of_a_store_that_lacks_a_part_are_answered_too,
    ),
    Role.RERANKER: (
        scoring.reranker_invents_no_memory_repeats_itself_and_changes_some_pool,
        scoring.pools_of_a_store_that_lacks_a_part_are_answered_too,
    ),
    Role.ANNOTATOR: (
        scoring.annotator_speaks_only_of_ranked_rows_and_not_always_the_same,
        scoring.pools_of_a_store_that_lacks_a_part_are_answered_too,
    ),
}


@dataclass(frozen=True)
class Case:
    """One promise of one component with one set of parameters. `str()` names it; `run` raises AssertionError."""

    trial: Trial
    promise: Promise
    values: Values

    @property
    def name(self) -> str:
        """The name of the promise."""
        return self.promise.__name__

    def run(self) -> None:
        """Raises AssertionError, with a description, unless the component keeps the promise."""
        self.promise(self.trial)

    def __str__(self) -> str:
        return "-".join((self.trial.entry.name, *map(str, self.values.values()), self.name))


def contract_cases(
    registry: Iterable[RegisteredComponent],
    *,
    parameters: Mapping[str, Sequence[Values]] | None = None,
    may_lack: Collection[str] = (),
    sample: Sample | None = None,
) -> list[Case]:
    """Every promise of every component of a registry, for `pytest.mark.parametrize("case", …, ids=str)`.

    Args:
        registry: The components.
        parameters: Sets of parameters to try, by name of the component; default: its default parameters.
        may_lack: Components that need a part which a store may lack, such as a model; only these may answer
            Unavailable.
        sample: The store, queries and pools to use; default: `Sample()`.
    """
    sample = sample or Sample()
    return [
        Case(Trial(entry, entry.params.model_validate(values), sample, entry.name in may_lack), promise, values)
        for entry in registry
        for values in (parameters or {}).get(entry.name, ({},))
        for promise in (*OF_ALL, *OF_ROLE[entry.role])
    ]


def check_component(
    role: Role,
    component: type[Any],
    name: str = "",
    *,
    parameters: Values | None = None,
    may_lack: bool = False,
    sample: Sample | None = None,
) -> None:
    """Checks one component against the contract of its role.

    Args:
        role: The role of the class.
        component: The class.
        name: Its name in pipeline files; default: that of its module.
        parameters: Parameters to try it with; default: its default parameters.
        may_lack: Whether it needs a part that a store may lack, and may then answer Unavailable.
        sample: The store, queries and pools to use; default: `Sample()`.

    Raises:
        AssertionError: For the first promise that it does not keep.
        SpeckitError: If the class does not fit the role at all.
    """
    registry = Registry()
    registry.admit(role, component, name)
    [entry] = registry
    tried = {entry.name: (parameters or {},)}
    lacking = (entry.name,) if may_lack else ()
    for case in contract_cases(registry, parameters=tried, may_lack=lacking, sample=sample):
        case.run()
