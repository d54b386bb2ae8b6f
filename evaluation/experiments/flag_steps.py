"""Tests whether a flag may move to the next state, and whether its evidence justifies its present state (feature
P11); gives go or no-go for each active flag by stored comparisons of the pipeline in use without and with it (E8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Literal

from speckit_memory.config.flags.flag import ACTIVE, ON, STATES, Flag
from speckit_memory.evaluation.experiments.criteria import figure_of, promotion_lacks
from speckit_memory.evaluation.experiments.experiments import find_experiment
from speckit_memory.evaluation.experiments.flag_evidence import CitedComparison, find_comparison
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import experiment_id
from speckit_memory.pipeline.configuration.builder import check_pipeline
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.variants import either_way, waiting_flags, with_flag
from speckit_memory.pipeline.roles.registry import Registry

Find = Callable[[str], CitedComparison | None]
"""Finds the comparison with an id, None where there is none."""


def next_state(state: str) -> str | None:
    """The state after this one, None for the last."""
    return STATES[STATES.index(state) + 1] if state != STATES[-1] else None


def state_before(state: str) -> str | None:
    """The state before this one, None for the first."""
    return STATES[STATES.index(state) - 1] if state != STATES[0] else None


def hashes(whole: Effective, name: str, registry: Registry) -> tuple[str, str]:
    """The hashes of the pipeline without and with a flag."""
    closed, opened = either_way(whole, name)
    return check_pipeline(closed, registry).hash, check_pipeline(opened, registry).hash


def lacking(whole: Effective, flag: Flag, registry: Registry, name: str, find: Find) -> list[str]:
    """Lists everything that prevents a comparison from justifying an enabled flag in this pipeline.

    Args:
        whole: The pipeline in use.
        flag: The flag.
        registry: The components.
        name: The id of the comparison.
        find: Looks up comparisons.
    """
    if flag.name not in waiting_flags(whole):
        return [f"no step of the pipeline '{whole.name}' waits for {flag.name}"]
    if not name:
        return ["a comparison is needed: --evidence with the id that `shadow report` or `eval compare --flag` shows"]
    found = find(name)
    if found is None:
        return [f"there is no comparison '{name}' in the evaluation database"]
    closed, opened = hashes(whole, flag.name, registry)
    lacks = []
    if found.control != closed:
        lacks.append(f"its control is {found.control or 'unknown'}; the pipeline without the flag is {closed}")
    if opened not in found.variants:
        others = ", ".join(found.variants) or "none"
        lacks.append(f"its variant is {others}; the pipeline with the flag is {opened}")
    if not flag.criterion:
        lacks.append(f"{flag.name} has no criterion, so nothing can meet it")
    figures = found.variants.get(opened) or (next(iter(found.variants.values())) if len(found.variants) == 1 else None)
    return [*lacks, *(promotion_lacks(flag, figures) if figures else ())]


def second_window(flag: Flag, name: str, enabled_at: float, find: Find) -> list[str]:
    """Lists why a comparison does not confirm the one by which a flag was enabled.

    A second comparison must be over other queries and made after the flag was enabled.

    Args:
        flag: The enabled flag.
        name: The id of the second comparison.
        enabled_at: When the flag was enabled, in epoch seconds.
        find: Looks up comparisons.
    """
    cited = str(flag.decision.get("evidence") or flag.facts.get("evidence") or "")
    first, second = find(cited), find(name)
    if second is None:
        return []
    if first is None:
        why = f"cites '{cited}', which is not in the evaluation database" if cited else "cites no comparison"
        return [f"a second comparison must confirm a first one, and the flag {why}; demote it and promote it by one"]
    if name == cited:
        return [f"it was enabled by {name} itself; a second comparison on other queries must confirm it"]
    lacks = []
    if shared := len(first.asked & second.asked):
        lacks.append(
            f"{shared:,} of the {len(second.asked):,} queries of {name} were asked in {cited}, by which it was "
            "enabled; a second comparison asks others"
        )
    if second.at < max(first.at, enabled_at):
        lacks.append(f"{name} was measured before the flag was enabled; a second comparison is made after that")
    return lacks


def too_dear(whole: Effective, name: str, registry: Registry, database: EvaluationDatabase) -> list[str]:
    """Lists why the dark run of a flag forbids comparing its answers; empty when there was no dark run.

    Args:
        whole: The pipeline in use.
        name: The flag.
        registry: The components.
        database: The evaluation database.
    """
    closed, opened = hashes(whole, name, registry)
    found = find_experiment(database, experiment_id(closed, opened, "dark_run"))
    if found is None or (spent := found.report.cost.spent) is None or not found.report.cost.budget_broken:
        return []
    budget = found.report.cost.budget_ms
    return [f"its dark run took {spent.p95:.0f} ms (p95 of {spent.n:,} queries), the budget is {budget:g} ms"]


def unborne(whole: Effective, flag: Flag, registry: Registry, find: Find) -> Iterator[str]:
    """Yields why the comparison that a flag cites does not justify its being on.

    The comparison must be between the present pipeline without and with the flag, and meet the flag's criterion. Flags
    enabled since then may be closed in it, as they were at that time.

    Args:
        whole: The pipeline in use.
        flag: The flag.
        registry: The components.
        find: Looks up comparisons.
    """
    name = str(flag.decision.get("evidence") or flag.facts.get("evidence") or "")
    found = find(name)
    if found is None:
        yield f"cites '{name}', and there is no such comparison in the evaluation database"
        return
    if flag.name not in waiting_flags(whole):
        return
    pairs = [hashes(one, flag.name, registry) for one in _as_it_was(whole, flag.name)]
    # the comparison may have been made before other flags were enabled
    borne = [opened for closed, opened in pairs if found.control == closed and opened in found.variants]
    if not borne:
        closed, opened = pairs[0]
        yield (
            f"cites {name}, which compares {found.control} with {', '.join(found.variants)}; the pipeline is {closed} "
            f"without the flag and {opened} with it"
        )
        return
    if lacks := promotion_lacks(flag, found.variants[borne[0]]):
        yield f"cites {name}, which does not meet its criterion: {'; '.join(lacks)}"


def _as_it_was(whole: Effective, name: str) -> Iterator[Effective]:
    """The present pipeline, then every combination of the other enabled flags closed."""
    others = [
        other
        for other in waiting_flags(whole)
        if other != name and whole.flags[other].state in ON and whole.flags[other].state != "permanent"
    ]
    # all subsets, the smallest first
    sizes: Sequence[int] = range(len(others) + 1)
    for chosen in chain.from_iterable(combinations(others, size) for size in sizes):
        one = whole
        for other in chosen:
            one = with_flag(one, other, on=False)
        yield one


Word = Literal["go", "no-go", "not yet"]


@dataclass(frozen=True, slots=True)
class FlagVerdict:
    """The verdict on one flag. `evidence` is the id of the comparison nearest to meeting its criterion, "" for none;
    `lacks` lists the unmet conditions."""

    flag: str
    state: str
    verdict: Word
    evidence: str
    lacks: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        why = f": {'; '.join(self.lacks)}" if self.lacks else ""
        by = f" by {self.evidence}" if self.evidence else ""
        return f"{self.flag} ({self.state}) {self.verdict}{by}{why}"


def flag_verdicts(
    whole: Effective, registry: Registry, flags: Iterable[Flag], database: EvaluationDatabase
) -> list[FlagVerdict]:
    """The verdict on each of these flags that is active and for which a step of the pipeline waits.

    Args:
        whole: The pipeline in use.
        registry: The components.
        flags: The flags to judge.
        database: The evaluation database.
    """
    waiting = set(waiting_flags(whole))
    return [
        _verdict(flag, *hashes(whole, flag.name, registry), database)
        for flag in flags
        if flag.state in ACTIVE and flag.name in waiting
    ]


def _verdict(flag: Flag, closed: str, opened: str, database: EvaluationDatabase) -> FlagVerdict:
    """Go if a comparison meets the criterion, no-go if there are comparisons and none does, else not yet."""
    # fewest unmet conditions first, then the most queries
    held = sorted(_comparisons(flag, closed, opened, database), key=lambda one: (len(one[1]), -one[2]))
    if not flag.criterion or not held:
        why = "no comparison of the pipeline in use without and with it is stored" if flag.criterion else "no criterion"
        return FlagVerdict(flag.name, flag.state, "not yet", "", (why,))
    name, lacks, _ = held[0]
    return FlagVerdict(flag.name, flag.state, "no-go" if lacks else "go", name, tuple(lacks))


def _comparisons(
    flag: Flag, closed: str, opened: str, database: EvaluationDatabase
) -> Iterator[tuple[str, list[str], int]]:
    """Every comparison of the two pipelines, with what it lacks and the number of queries behind its figures."""
    kept = [stored.id for stored in reversed(database.evaluations()) if "pipelines" in stored.document]
    pair = (closed, opened, "shadow")
    shadows = [one.id for one in database.experiments() if (one.control.hash, one.variant.hash, one.mode) == pair]
    for name in dict.fromkeys((*shadows, *kept)):
        found = find_comparison(database, name)
        if found is not None and found.control == closed and opened in found.variants:
            figures = found.variants[opened]
            shown = [figure_of(condition, figures) for condition in flag.criterion]
            yield name, promotion_lacks(flag, figures), sum(one.queries if one else 0 for one in shown)
