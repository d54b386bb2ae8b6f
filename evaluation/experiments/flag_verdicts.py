"""Go or no-go for each active flag, by stored comparisons of the pipeline in use without and with it (feature E8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from speckit_memory.config.flags.flag import Flag
from speckit_memory.config.flags.flag_states import ACTIVE
from speckit_memory.evaluation.experiments.criteria import figure_of, promotion_lacks
from speckit_memory.evaluation.experiments.flag_evidence import find_comparison
from speckit_memory.evaluation.experiments.flag_steps import hashes
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.variants import waiting_flags
from speckit_memory.pipeline.roles.registry import Registry

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
