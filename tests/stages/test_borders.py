"""What happens exactly on a border: the limits are inclusive on the side that the documentation says."""

from __future__ import annotations

import numpy as np
import pytest
from components.asking import query
from components.pools import rerank, scores_of

from speckit_memory.pipeline.model.columns import Notes, Plan
from speckit_memory.pipeline.ports import FolderDescription
from speckit_memory.pipeline.running.lookup import coverage
from speckit_memory.pipeline.testing import FakeStore, Memory, ask, pool_of, ranking_of
from speckit_memory.stages.annotate.evidence_gap import EvidenceGap, EvidenceGapParams
from speckit_memory.stages.candidates.folder_prefilter import FolderPrefilter, FolderPrefilterParams
from speckit_memory.stages.rerank.mmr import Mmr, MmrParams
from speckit_memory.stages.rerank.relevance_floor import RelevanceFloor, RelevanceFloorParams

EIGHT = FakeStore(*(Memory(i) for i in range(1, 9)))


def gap(params: EvidenceGapParams, scores: dict[int, float], store: FakeStore = EIGHT, text: str = "") -> bool:
    notes = EvidenceGap(params).annotate(ask(text), ranking_of(store, scores), store)
    assert isinstance(notes, Notes)
    return bool(notes.overall["evidence_gap"])


@pytest.mark.requirement("A4.z")
def test_a_z_that_reaches_the_limit_is_no_gap() -> None:
    scores = {1: 1.0, 2: 0.0, 3: 0.0, 4: 0.0, 5: 0.0}
    column = np.array([*scores.values()])
    z = float((column.max() - column.mean()) / column.std())  # 2: mean .2, deviation .4

    assert not gap(EvidenceGapParams(min_z=z), scores)
    assert gap(EvidenceGapParams(min_z=float(np.nextafter(z, 9))), scores)


@pytest.mark.requirement("A4.z")
def test_two_rows_are_tested_for_standing_out_and_one_is_not() -> None:
    assert gap(EvidenceGapParams(), {1: 0.9, 2: 0.1})
    assert not gap(EvidenceGapParams(), {1: 0.9})
    assert gap(EvidenceGapParams(min_z=0.1), {1: 0.5, 2: 0.5})  # equal rows: nothing stands out


@pytest.mark.requirement("A4")
def test_a_coverage_that_reaches_the_limit_is_no_gap() -> None:
    store = FakeStore(Memory(1, title="rank"), Memory(2, title="fusion"))
    share = coverage(("rank", "fusion"), np.array([1], np.int64), store.lexicon, store.attributes.count)
    assert share == 0.5

    assert not gap(EvidenceGapParams(form="coverage", top=1, min_coverage=0.5), {1: 0.9, 2: 0.1}, store, "rank fusion")
    assert gap(EvidenceGapParams(form="coverage", top=1, min_coverage=0.51), {1: 0.9, 2: 0.1}, store, "rank fusion")


def same_texts(count: int) -> FakeStore:
    return FakeStore(*(Memory(i, chunks=("a b",)) for i in range(1, count + 1)))


@pytest.mark.requirement("R2.pool")
def test_as_many_rows_as_diversity_needs_are_diversified() -> None:
    scores = {1: 1.0, 2: 0.9}
    two, three = (Mmr(MmrParams.model_validate({"lambda": 0.5, "min_rows": least})) for least in (2, 3))

    # the second row says the same as the first: .5 · .9 - .5
    assert scores_of(rerank(two, ask(), pool_of(same_texts(2), scores), same_texts(2)))[2] == pytest.approx(-0.05)
    assert scores_of(rerank(three, ask(), pool_of(same_texts(2), scores), same_texts(2)))[2] == pytest.approx(0.45)


@pytest.mark.requirement("R2.intent")
@pytest.mark.parametrize(("confidence", "weight"), [(0.3, 0.85), (0.2999, 0.7)])
def test_an_intent_counts_from_the_confidence_on(confidence: float, weight: float) -> None:
    store = same_texts(2)
    mmr = Mmr(MmrParams.model_validate({"lambda": "by_intent"}))
    asked = ask(plan_intent="fix_bug", plan_intent_confidence=confidence)

    assert rerank(mmr, asked, pool_of(store, {1: 1.0, 2: 0.5}), store).score[0] == pytest.approx(weight)


@pytest.mark.requirement("A4")
@pytest.mark.parametrize(("least", "kept"), [(0.4, [1, 2]), (0.4001, [2])])
def test_a_row_on_the_floor_of_relevance_stays(least: float, kept: list[int]) -> None:
    store = FakeStore(Memory(1), Memory(2))
    pool = pool_of(store, {1: 0.9, 2: 0.8}, found={"vector": [2, 1]}, raw={"vector": {1: 0.4, 2: 0.5}})

    assert rerank(RelevanceFloor(RelevanceFloorParams(min_score=least)), ask(), pool, store).ids.tolist() == kept


@pytest.mark.requirement("C13")
@pytest.mark.parametrize(("share", "folders"), [(0.5, ("auth",)), (0.51, ())])
def test_a_folder_about_just_the_share_of_the_words_narrows_the_search(share: float, folders: tuple[str, ...]) -> None:
    store = FakeStore(
        folders=(
            FolderDescription("auth", "How people sign in.", frozenset({"login", "token"})),
            FolderDescription("notes", "", frozenset({"misc"})),
        )
    )
    step = FolderPrefilter(FolderPrefilterParams(min_share=share))

    plan = step.understand(query("login token friday meeting"), Plan(variants=("x",)), store)

    assert plan.folders == folders


@pytest.mark.requirement("C13")
def test_folders_that_are_all_about_the_query_narrow_nothing() -> None:
    store = FakeStore(folders=tuple(FolderDescription(name, "", frozenset({"login"})) for name in ("a", "b")))

    plan = FolderPrefilter(FolderPrefilterParams()).understand(query("login"), Plan(variants=("x",)), store)

    assert plan.folders == ()
