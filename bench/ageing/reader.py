"""Who reads answers: sees the first rows alone, is drawn by what looks right, errs, and says little.

A reader doesn't know the judgements. What is stale looks nearly as right as what is not, and is recognised by half of
those who open it; a mark that says so keeps most from opening it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from bench.ageing.project import Project
from bench.ageing.questions import Question
from speckit_memory.engine.answers.results import ResultRow

LOOKS = {"right": 0.85, "mentions": 0.45, "stale": 0.7, "marked": 0.25, "near": 0.2, "far": 0.03}
"""The chance that a row which was looked at is opened, by what it is."""
FURTHER = 0.72
"""The chance that somebody who is not satisfied looks at one row more."""
SATISFIED = 0.9
RECOGNISED = 0.5
"""The chance that somebody who opened something stale notices that."""
SAYS_USEFUL, SAYS_NOT_USEFUL, SAYS_WRONGLY = 0.25, 0.4, 0.06
"""The chances that somebody says what they found: it helped; it is stale; the contrary of what it is."""
LINKS = 0.2
"""The chance that somebody who found the stale one and then the right one links them."""


@dataclass(frozen=True, slots=True)
class Read:
    """A row that was opened at a rank, from 1, and the judgement that was given, None for none."""

    key: str
    rank: int
    what: str
    useful: bool | None
    recognised: bool


def what_is(project: Project, question: Question, row: ResultRow) -> str:
    """What a row is to a question, as `LOOKS` names it."""
    document = project.documents[row.key]
    about = [claim for claim in document.claims if claim.component == question.component.name]
    fitting = [claim for claim in about if claim.aspect == question.aspect.name]
    if document.error and fitting:
        return "right" if question.kind == "error" else "mentions"
    if not fitting:
        return "near" if about else "far"
    [claim] = fitting
    if claim.value != project.values[claim.component, claim.aspect][-1]:
        return "marked" if row.notes.get("superseded_by") else "stale"
    return "right" if claim.main else "mentions"


def reads(project: Project, question: Question, rows: Sequence[ResultRow], random: Random) -> list[Read]:
    """What a reader opens of an answer, in order."""
    opened: list[Read] = []
    for rank, row in enumerate(rows, 1):
        what = what_is(project, question, row)
        if random.random() < LOOKS[what]:
            found = _found(row.key, rank, what, random)
            opened.append(found)
            content = what in ("right", "mentions") or (what in ("stale", "marked") and not found.recognised)
            if content and random.random() < SATISFIED:
                break
        if random.random() >= FURTHER:
            break
    return opened


def _found(key: str, rank: int, what: str, random: Random) -> Read:
    recognised = what in ("stale", "marked") and random.random() < RECOGNISED
    good = what in ("right", "mentions") or (what in ("stale", "marked") and not recognised)
    useful: bool | None = None
    if random.random() < (SAYS_USEFUL if good else SAYS_NOT_USEFUL):
        useful = good
    elif random.random() < SAYS_WRONGLY:
        useful = not good
    return Read(key, rank, what, useful, recognised)
