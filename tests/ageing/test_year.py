"""The simulated year: what is true in it, that a seed gives it, and that its figures tell help from harm."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest

from bench.ageing import checkpoint
from bench.ageing.checkpoint import Moment
from bench.ageing.measure import Figures, measured
from bench.ageing.project import REGIMES, Change, Project
from bench.ageing.questions import held_out, judged, of_session
from bench.ageing.report import compared
from bench.ageing.variants import VARIANTS, adding
from bench.ageing.words import ASPECTS, HISTORY
from bench.ageing.year import Checkpoint, Year
from speckit_memory.engine import Memory
from speckit_memory.evaluation.datasets.dataset import read

pytestmark = pytest.mark.usefixtures("simulated")

SEED, SIZE, DAYS, QUERIES = 3, 12, 33, 200
CONFIDENCE = adding("confidence", "judgements", {"use": "confidence", "weight": 0.3})
FACTS = (
    "SELECT key, tier, stability, difficulty, confidence, access_count, review_count, last_review, expires_at "
    "FROM memories ORDER BY key"
)


def live(root: Path) -> tuple[Moment, Year]:
    """A short year, and the folder of its last day."""
    year = Year(REGIMES["moving"], root / "project", SEED, SIZE, DAYS, QUERIES)
    moments = []

    def at(found: Checkpoint) -> None:
        checkpoint.write(root / "moment", year.root, "moving", SEED, found)
        moments.append(checkpoint.read(root / "moment"))

    year.live([DAYS - 1], at)
    return moments[0], year


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Moment, Year]:
    return live(tmp_path_factory.mktemp("year"))


def facts(moment: Moment) -> list[tuple[object, ...]]:
    with Memory.open(moment.store, root=moment.folder, environ={}, create=False) as memory:
        return list(memory.session.database.reader().execute(FACTS))


def test_a_seed_gives_a_year_to_the_last_review(lived: tuple[Moment, Year], tmp_path: Path) -> None:
    moment, year = lived
    again, repeated = live(tmp_path)
    assert again.queries == moment.queries
    assert repeated.events == year.events
    assert facts(again) == facts(moment)


def test_everything_that_a_year_is_made_of_has_happened(lived: tuple[Moment, Year]) -> None:
    moment, year = lived
    happened = Counter(year.events)
    for event in (
        "indexed", "begun", "revised", "declared", "said", "silent", "overview", "incident", "note", "searches",
        "opened", "opened stale", "opened below 3", "useful", "not useful", "cited", "saved", "jobs",
        "verdict supersede",
    ):  # fmt: skip
        assert happened[event], event
    with Memory.open(moment.store, root=moment.folder, environ={}, create=False) as memory:
        stored = memory.session.database.reader()
        [(reviewed,)] = stored.execute("SELECT count(*) FROM memories WHERE review_count > 0")
        [(attended,)] = stored.execute("SELECT count(*) FROM working_memory")
        assert reviewed
        assert attended
        assert memory.lifecycle.archived()
        assert memory.triggers.learned().pairs
        assert set(memory.graph.stats().by_maker) >= {"document", "prediction_error"}


def test_the_folder_of_a_moment_is_a_dataset_of_the_evaluation(lived: tuple[Moment, Year]) -> None:
    moment, year = lived
    dataset = read(moment.folder)
    assert dataset.keys == set(year.project.documents)
    assert [query.id for query in dataset.judged()] == [query.id for query in moment.queries]
    assert {query.kind for query in moment.queries} == {"question", "words", "nickname", "error", "history"}
    assert any(query.session for query in moment.queries)
    assert any(query.stale for query in moment.queries)


@pytest.mark.parametrize("regime", REGIMES)
def test_judgements_follow_from_what_is_true_and_queries_are_worded_as_no_session_words_them(regime: str) -> None:
    project, random = Project.begin(REGIMES[regime], 10, 100, SEED), Random(SEED)
    for component in project.components:
        list(project.written_first(component, 0))
    for day, event in enumerate(("revised", "declared", "said", "silent") * 10):
        component = random.choice(project.components)
        project.change(Change(component, random.choice(component.aspects), event), day)  # type: ignore[arg-type]
    component = project.components[0]
    project.incident(component, component.aspects[0], 50)

    asked = {of_session(project, component, random).text for component in project.components for _ in range(40)}
    kinds = Counter[str]()
    for _ in range(400):
        question = held_out(project, random.choice(project.components), random)
        grades, stale = judged(project, question)
        kinds[question.kind] += 1
        told = project.values[question.component.name, question.aspect.name]
        assert question.text not in asked
        assert grades
        assert not stale & set(grades)
        for path in (*stale, *grades):
            [claim] = [
                claim
                for claim in project.documents[path].claims
                if (claim.component, claim.aspect) == (question.component.name, question.aspect.name)
            ]
            if path in stale:
                assert claim.value in told[:-1]
            elif question.kind != "history" and not project.documents[path].error:
                assert claim.value == told[-1]
    assert set(kinds) == {"question", "words", "nickname", "error", "history"}


def test_no_wording_of_a_judged_query_is_one_of_sessions() -> None:
    for aspect in ASPECTS:
        assert not {aspect.word[0], *aspect.asked} & {aspect.word[1], *aspect.held_out, *HISTORY}


def planted(moment: Moment, folder: Path, helpful: Callable[[str], bool]) -> Figures:
    """The differences that confidence makes where readers found useful what is `helpful`, and the rest not."""
    shutil.copytree(moment.folder, folder)
    told = {
        key
        for query in moment.queries
        for key in (*query.stale, *(k for k, grade in query.grades.items() if grade == 3.0))
    }
    with Memory.open(folder / ".speckit" / "memory.db", root=folder, environ={}, create=False) as memory:
        for key in sorted(told - {one.key for one in memory.lifecycle.archived()}):
            for _ in range(5):
                memory.learning.validate(key, useful=helpful(key))
    report = compared({SEED: [measured(checkpoint.read(folder), [CONFIDENCE])]}, {"confidence": "default"})
    row = report["variants"]["confidence"]
    return {name: np.array([row[name]["delta"], row[name]["p"]]) for name in ("nDCG@10", "stale@5", "stale@1")}


def test_a_signal_that_was_planted_to_help_helps_and_one_that_was_planted_to_harm_harms(
    lived: tuple[Moment, Year], tmp_path: Path
) -> None:
    moment, _ = lived
    right = {
        key
        for query in moment.queries
        if query.kind != "history"
        for key, grade in query.grades.items()
        if grade == 3.0
    }
    good = planted(moment, tmp_path / "good", lambda key: key in right)
    bad = planted(moment, tmp_path / "bad", lambda key: key not in right)
    assert good["nDCG@10"][0] > 0 > bad["nDCG@10"][0]
    assert max(good["nDCG@10"][1], bad["nDCG@10"][1]) < 0.05
    assert good["stale@1"][0] < bad["stale@1"][0]


def test_every_variant_is_another_pipeline_or_another_store_than_the_default() -> None:
    assert len({variant.name for variant in VARIANTS}) == len(VARIANTS)
    for variant in VARIANTS:
        assert sum((variant.pipeline is not None, bool(variant.flags), variant.undone is not None)) == 1
