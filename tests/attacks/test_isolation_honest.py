"""Isolation costs an honest component nothing but time: what it answers is the same to the last bit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from isolated.distributions import installed
from isolated.opened import hosting, isolating, opened, trusting
from tally import Tally

from speckit_memory.engine import Memory
from speckit_memory.engine.components import COMPONENTS
from speckit_memory.engine.pipelines.pipelines import show
from speckit_memory.pipeline.guards.sealing import seal
from speckit_memory.pipeline.isolation.codec import pack
from speckit_memory.pipeline.isolation.host import Host
from speckit_memory.pipeline.model.columns import Plan, Query
from speckit_memory.pipeline.roles.contracts import Role
from speckit_memory.pipeline.roles.registry import RegisteredComponent, Registry
from speckit_memory.pipeline.testing import Sample
from speckit_memory.pipeline.testing.sample import pooled
from speckit_memory.pipeline.testing.scoring import tables
from tests.attacks.isolated import lost, workspace
from tests.components.test_contracts import REQUIRED, VARIANTS

pytestmark = pytest.mark.usefixtures("processes")

NAMES = [component.__module__.rpartition(".")[2] for _, component in COMPONENTS]
QUESTIONS = (
    "why are ranks fused", '"rank fusion"', "REQ-006", "computeMPAB", "bakcup of the fiel", "検索", "storage -backup",
    "how does the store keep its backups consistent with the write-ahead log of the database?", "quokka",
    "nothing known",
)  # fmt: skip
SAMPLE = Sample()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(installed(tmp_path_factory.mktemp("path"), "shipped_again")))
        with hosting(memory_mb=1024) as host:
            yield host


@pytest.fixture(scope="module")
def registries(host: Host) -> tuple[Registry, Registry]:
    """The product's components once more, in this process and in another."""
    return trusting(), isolating(host)


def asked(entry: RegisteredComponent, parameters: dict[str, object]) -> list[bytes]:
    """Everything that a component answers to the questions of the contracts, as bytes."""
    component: Any = entry.component(entry.params.model_validate(parameters))
    told = replace(entry, name=entry.name.removeprefix("again_"))
    answers: list[object] = []
    for query in SAMPLE.questions:
        plan = Plan(variants=(query.text,), complexity="moderate", reasons=("first",))
        match entry.role:
            case Role.UNDERSTANDER:
                answers.append(component.understand(query, plan, SAMPLE.store))
            case Role.RECOVERER:
                answers.append(component.recover(query, query.plan, SAMPLE.store))
            case Role.CHANNEL:
                answers.append(component.search(query, 7, SAMPLE.store))
                if hasattr(component, "about_concept"):
                    answers.append(component.about_concept("rank fusion", query, SAMPLE.store))
            case Role.FUSER:
                answers.append(component.fuse(query, tables()[2]))
            case Role.SIGNAL:
                answers += [component.evidence(query, pool, SAMPLE.store) for pool in SAMPLE.pools_for(told)]
            case Role.RERANKER:
                answers += [component.rerank(query, pool, SAMPLE.store) for pool in SAMPLE.pools_for(told)]
            case Role.ANNOTATOR:
                answers += [component.annotate(query, seal(pool), SAMPLE.store) for pool in SAMPLE.pools_for(told)]
    return [b"\n".join(pack(answer)) for answer in answers]


@pytest.mark.parametrize("name", NAMES)
def test_every_component_of_the_product_answers_the_same(
    registries: tuple[Registry, Registry], name: str, tally: Tally
) -> None:
    here, there = (registry.find(f"again_{name}") for registry in registries)
    assert here is not None
    assert there is not None
    for extra in ({}, *VARIANTS.get(name, ())):
        parameters = REQUIRED.get(name, {}) | extra
        expected = asked(here, parameters)
        assert asked(there, parameters) == expected
        tally.tried(len(expected))


def test_every_component_is_described_the_same(registries: tuple[Registry, Registry], tally: Tally) -> None:
    for name in NAMES:
        here, there = (registry.find(f"again_{name}") for registry in registries)
        assert here is not None
        assert there is not None
        assert _facts(here) == _facts(there)
        assert here.params.model_json_schema(by_alias=True) == there.params.model_json_schema(by_alias=True)
        tally.tried()


def _facts(entry: RegisteredComponent) -> tuple[object, ...]:
    offers = [offer for offer in ("check", "settled", "scale", "weighs_intent") if hasattr(entry.component, offer)]
    fields = [(name, field.alias) for name, field in entry.params.model_fields.items()]
    return entry.name, entry.role, entry.about, entry.summary, entry.origin, entry.extension, offers, fields


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = workspace(tmp_path_factory.mktemp("honest"))
    for preset in ("default", "catalogue", "rrf"):
        (root / f"{preset}.yaml").write_text(_again(show(preset, {}, effective=True)), encoding="utf-8")
    return root


def _again(text: str) -> str:
    """A pipeline whose steps are those of the extension, under the ids that they had."""
    return re.sub(r"\{use: (\w+)(, id: )?", lambda m: f"{{use: again_{m[1]}{m[2] or ', id: ' + m[1]}", text)


def answers(memory: Memory, question: str) -> list[object]:
    """All that an answer says of this search, but not which one it was and how long it took."""
    result = memory.search(question, now=1_760_000_000.0, limit=6)
    document = result.as_json()
    del document["timings_ms"], document["query_id"]
    assert not lost(document)
    return [document, *(memory.explain.row(result, row.id).as_json() for row in result.results)]


@pytest.mark.parametrize("preset", ["default", "catalogue", "rrf"])
def test_whole_pipelines_answer_and_explain_the_same(
    root: Path, registries: tuple[Registry, Registry], preset: str, tally: Tally
) -> None:
    here, there = registries
    with opened(root, root / f"{preset}.yaml", here) as trusted, opened(root, root / f"{preset}.yaml", there) as apart:
        for memory in (trusted, apart):
            memory.models.load_vectors()  # until then the file may answer, and answers say so
        for question in QUESTIONS:
            assert answers(apart, question) == answers(trusted, question)
            tally.tried()


def test_six_threads_get_what_one_gets(root: Path, registries: tuple[Registry, Registry], tally: Tally) -> None:
    with opened(root, root / "rrf.yaml", registries[1]) as memory:
        memory.models.load_vectors()  # until then the file answers, and answers say so
        expected = {question: answers(memory, question) for question in QUESTIONS}
        begin, failures = Barrier(6), []

        def search(at: int) -> None:
            begin.wait()
            try:
                for question in (*QUESTIONS[at:], *QUESTIONS[:at]):
                    assert answers(memory, question) == expected[question]
                    tally.tried()
            except BaseException as error:
                failures.append(error)

        threads = [Thread(target=search, args=(at,)) for at in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []


def test_a_mistaken_parameter_is_told_as_in_this_process(
    root: Path, registries: tuple[Registry, Registry], tally: Tally
) -> None:
    from speckit_memory.pipeline.configuration.builder import examine

    mistakes: tuple[Callable[[str], str], ...] = (
        lambda text: text.replace("limit: 50", "limit: 0", 1),
        lambda text: text.replace("k1: 1.2", "k1: soon", 1),
        lambda text: text.replace("k1: 1.2", "k11: 1.2", 1),
        lambda text: text.replace("missing: lowest", "missing: best", 1),
        lambda text: text.replace("body: 1.0", "boddy: 1.0", 1),
        lambda text: text.replace("weights: {bm25", "weights: {bm52", 1),
        lambda text: text.replace("{model: none", "{model: 7", 1),
        lambda text: text.replace("again_bm25, id: bm25", "again_bm52, id: bm25", 1),
    )
    whole = (root / "default.yaml").read_text(encoding="utf-8")
    for mistake in mistakes:
        assert mistake(whole) != whole
        file = root / "mistaken.yaml"
        file.write_text(mistake(whole), encoding="utf-8")
        here, there = ([str(one) for one in examine(str(file), one, {}).problems] for one in registries)
        assert there == here != []
        tally.tried()


def test_query_and_session_reach_the_component(host: Host, registries: tuple[Registry, Registry], tally: Tally) -> None:
    entry = registries[1].find("again_session_dedup")
    assert entry is not None
    component: Any = entry.component(entry.params.model_validate({}))
    seen = Query("rank fusion", now=SAMPLE.questions[0].now, session="s", plan=Plan(variants=("rank fusion",)))
    few = pooled(SAMPLE.store, SAMPLE.pools["few"], replace(entry, name="session_dedup"))
    notes = component.annotate(seen, seal(few), SAMPLE.store)
    assert notes.by_id == {6: {"sent_before": ["text of 6"]}}
    tally.tried()
