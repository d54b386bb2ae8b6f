"""Contract of fusers, signals, rerankers and annotators."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from speckit_memory.pipeline.guards.note_checks import check_notes
from speckit_memory.pipeline.guards.sealing import seal
from speckit_memory.pipeline.model.columns import Candidates, Fused, Grouped, Hits, Notes, Pool, Rescored, Selected
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.roles.contracts import Combine, Role, SignalParams
from speckit_memory.pipeline.roles.hooks import combine_of
from speckit_memory.pipeline.running.apply import ChannelSearch, apply_fusion, apply_rerank, apply_signal, union
from speckit_memory.pipeline.testing.sample import LACKING, pooled, sample_store
from speckit_memory.pipeline.testing.trial import Trial

ROUNDING = 1e-9


def tables() -> list[Candidates]:
    """The candidates of two channels for none, one and two variants of a query."""
    found = [
        ChannelSearch("bm25", 0, Hits(np.array([6, 1, 4]), np.array([7.5, 3.0, 0.5]), Scale.BM25), 50),
        ChannelSearch("vector", 0, Hits(np.array([1, 2]), np.array([0.9, 0.1]), Scale.COSINE), 2),
        ChannelSearch("bm25", 1, Hits(np.array([4, 6]), np.array([2.0, 1.0]), Scale.BM25), 50),
        ChannelSearch("vector", 1, Hits(np.array([], np.int64), np.array([]), Scale.COSINE), 2),
    ]
    return [union(found[: 2 * variants], sample_store().attributes) for variants in range(3)]


def fuser_names_the_parts_of_every_score(trial: Trial) -> None:
    """Parts are named, finite, aligned, within the scale when summed, and distinguish some candidates."""
    for table in tables():
        answer = trial.whole(trial.component().fuse(trial.sample.questions[0], table), Fused, "candidates")
        shape = (len(table), len(answer.names))
        trial.must(answer.parts.shape == shape, f"returned parts of the shape {answer.parts.shape}; accepted: {shape}")
        trial.must(np.isfinite(answer.parts).all(), "returned parts that are not finite numbers")
        trial.must(len(set(answer.names)) == len(answer.names), f"gave two parts one name: {answer.names}")
        scale = trial.scale
        assert scale is not None  # the registry rejects a fuser that declares none
        after = apply_fusion(trial.entry.name, scale, table, answer)
        trial.must(set(after.ids.tolist()) == set(table.ids.tolist()), "lost candidates")
        trial.must(len(np.unique(after.score)) > 1 or not len(table), "gave all candidates the same score")
        if scale is Scale.UNIT:
            total = answer.parts.sum(axis=1)
            within = np.all((total >= -ROUNDING) & (total <= 1 + ROUNDING))
            trial.must(within, f"gave scores from {total.min(initial=0)} to {total.max(initial=0)} on the unit scale")


def score_of_a_candidate_does_not_depend_on_its_row(trial: Trial) -> None:
    """Candidates in another order get the same scores."""
    table, asked = tables()[2], trial.sample.questions[0]
    rows = np.arange(len(table))[::-1]
    plain, turned = trial.component().fuse(asked, table), trial.component().fuse(asked, table.take(rows))
    trial.must(
        np.allclose(plain.parts[rows], turned.parts), "gave candidates other scores when their rows had another order"
    )


def signal_answers_a_finite_number_per_row_and_tells_some_apart(trial: Trial) -> None:
    """A float64 column over the pool, repeatable, that moves no row by itself and is not constant."""
    component, different, params = trial.component(), 0, trial.params
    combine: Combine | None = combine_of(component)
    trial.must(combine, "does not declare in 'combine' whether it is added or multiplied")
    assert combine is not None and isinstance(params, SignalParams)
    for before in trial.sample.pools_for(trial.entry):
        for asked in trial.sample.questions:
            column = trial.whole(component.evidence(asked, before, trial.sample.store), np.ndarray, f"{asked.text!r}")
            found, wanted = f"{column.dtype}{list(column.shape)}", f"float64[{len(before)}]"
            trial.must(found == wanted, f"returned {found}; accepted: {wanted}")
            trial.must(np.isfinite(column).all(), "returned a column with numbers that are not finite")
            after, _ = apply_signal(trial.entry.name, combine, params, before, column, np.zeros(len(before)))
            trial.must(np.array_equal(after.ids, before.ids), "moved rows")
            again = component.evidence(asked, before, trial.sample.store)
            trial.must(np.array_equal(column, again), f"gave another answer to {asked.text!r} the second time")
            different = max(different, len(np.unique(column)))
    trial.must(different > 1, "gave all rows of every pool the same number")


def reranker_invents_no_memory_repeats_itself_and_changes_some_pool(trial: Trial) -> None:
    """The answer fits the pool, and gives the same result when repeated."""
    component, store, changed = trial.component(), trial.sample.store, False
    for before in trial.sample.pools_for(trial.entry):
        for asked in trial.sample.questions:
            answer = component.rerank(asked, before, store)
            kind: Any = Grouped if trial.entry.about.groups else Selected if isinstance(answer, Selected) else Rescored
            trial.whole(answer, kind, f"{asked.text!r}")
            if not isinstance(answer, Selected):
                found, wanted = f"{answer.scores.dtype}{list(answer.scores.shape)}", f"float64[{len(before)}]"
                trial.must(found == wanted, f"returned scores {found}; accepted: {wanted}")
                trial.must(np.isfinite(answer.scores).all(), "returned scores that are not finite numbers")
                trial.must(_told(before, answer), "returned workings that give other scores than its own")
            after, again = (_reranked(trial, before, one) for one in (answer, component.rerank(asked, before, store)))
            invented = set(after.candidates.parents.tolist()) - set(before.candidates.parents.tolist())
            trial.must(not invented, f"invented the memories {sorted(invented)}")
            repeats = np.array_equal(after.ids, again.ids) and np.array_equal(after.score, again.score)
            trial.must(repeats, f"gave another answer to {asked.text!r} the second time")
            changed |= not (np.array_equal(before.ids, after.ids) and np.array_equal(before.score, after.score))
    trial.must(changed, "changed none of the pools")


def _told(before: Pool, answer: Rescored | Grouped) -> bool:
    """Whether the workings give exactly the scores; of a group, that of its first row, which remains."""
    if answer.workings is None:
        return True
    rows = np.arange(len(before))
    if isinstance(answer, Grouped):
        rows = np.unique(answer.groups, return_index=True)[1]
    return np.array_equal(answer.workings.take(rows).scores(before.score[rows]), answer.scores[rows])


def _reranked(trial: Trial, before: Pool, answer: Any) -> Pool:
    """The pool after a rerank step, computed as in the runner."""
    scale = trial.entry.about.gives or (before.scale.widened if trial.entry.about.widens else before.scale)
    return apply_rerank(trial.entry.name, scale, before, answer)


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
