"""Contract of annotators, and of all steps after fusion for stores that lack parts."""

from __future__ import annotations

from itertools import product

import numpy as np

from speckit_memory.pipeline.guards.note_checks import check_notes
from speckit_memory.pipeline.guards.sealing import seal
from speckit_memory.pipeline.model.columns import Grouped, Notes, Rescored, Selected
from speckit_memory.pipeline.roles.contracts import Role
from speckit_memory.pipeline.testing.sample import LACKING, pooled
from speckit_memory.pipeline.testing.trial import Trial


def annotator_speaks_only_of_ranked_rows_and_not_always_the_same(trial: Trial) -> None:
    """Notes are about rows of the ranking, are the same on repetition, and differ for some query or ranking."""
    component, said = trial.component(), list[tuple[object, ...]]()
    sample = trial.sample
    for before, asked, store in product(
        sample.pools_for(trial.entry), sample.questions, (sample.store, sample.encoded)
    ):
        notes = trial.whole(component.annotate(asked, seal(before), store), Notes, f"{asked.text!r}")
        trial.must(
            _as_tuple(trial.checked(check_notes, notes, before, asked.anchors)) == _as_tuple(notes),
            "made notes that the frame would change",
        )
        again = _as_tuple(component.annotate(asked, seal(before), store))
        trial.must(_as_tuple(notes) == again, f"gave another answer to {asked.text!r} the second time")
        said.append(_as_tuple(notes))
    trial.must(any(told != said[0] for told in said), "gave the same notes for every query and ranking")


def _as_tuple(notes: Notes) -> tuple[object, ...]:
    return dict(notes.by_id), notes.overall, notes.warnings, () if notes.keep is None else tuple(notes.keep.tolist())


def pools_of_a_store_that_lacks_a_part_are_answered_too(trial: Trial) -> None:
    """A store without texts, vectors or models: the step answers, or says why it cannot."""
    component, asked = trial.component(), trial.sample.questions[0]
    for scores in ({}, {1: 0.9, 2: 0.1}):
        before = pooled(LACKING, scores, trial.entry)
        match trial.entry.role:
            case Role.SIGNAL:
                trial.lacking(component.evidence(asked, before, LACKING), np.ndarray)
            case Role.RERANKER:
                trial.lacking(component.rerank(asked, before, LACKING), Rescored, Grouped, Selected)
            case _:
                trial.lacking(component.annotate(asked, seal(before), LACKING), Notes)
