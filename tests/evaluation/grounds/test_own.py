from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from answered import refused
from rendered import said

from speckit_memory.config.workspace.settings import workspace_root
from speckit_memory.engine.api.memory import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.comparing.compare import compare_pipelines
from speckit_memory.evaluation.comparing.gate import gate
from speckit_memory.evaluation.datasets.documents import DatasetDocument
from speckit_memory.evaluation.ground_truth.own import BY_USE, KNOWN_ITEM, OwnSource, judged_by_use
from speckit_memory.evaluation.ground_truth.own_queries import (
    ENOUGH_QUERIES,
    FOREIGN,
    OwnDocument,
    OwnQueries,
    own_queries,
)
from speckit_memory.evaluation.running.run import run
from speckit_memory.evaluation.statistics.report import as_document
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    Observation,
    QueryJudgement,
    QueryRecord,
    UseRecord,
)

WORDS = ["apricot", "quokka", "sextant", "vellum", "zeppelin", "marimba", "obsidian", "tundra"]
ENVIRON: dict[str, str] = {}


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A store of eight notes, two of whose titles are nearly the same."""
    for number, word in enumerate(WORDS):
        folder = tmp_path / "docs" / ("one" if number % 2 else "two")
        folder.mkdir(parents=True, exist_ok=True)
        triggers = f"trigger_phrases: [{word} handling rules]\n" if number < 4 else ""
        (folder / f"{word}.md").write_text(
            f"---\ntitle: Storage of the {word} archive\n{triggers}---\n# Storage of the {word} archive\n\n"
            f"We decided to keep every {word} in a cabinet.\n\n"
            f"## Loading a {word} quickly\n\nThe {word}Loader does it.\n"
        )
    with Memory.open(tmp_path / "memory.db", "bm25", root=tmp_path, environ=ENVIRON) as memory:
        memory.index(tmp_path / "docs")
    return tmp_path / "memory.db"


def content(file: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table."""
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    names = [
        str(name)
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        )
    ]
    return {name: sorted(connection.execute(f'SELECT * FROM "{name}"'), key=repr) for name in names}


@pytest.mark.requirement("E3.own")
def test_queries_are_made_of_triggers_headings_titles_and_words_of_ones_own_memories(db: Path) -> None:
    ground = OwnSource(db).ground(ENVIRON)
    kinds = {query.id.rpartition("-")[0] for query in ground.dataset.queries}
    assert {"triggers", "headings", "titles", "words"} <= kinds
    triggers = {
        query.text: ground.dataset.judgements[query.id]
        for query in ground.dataset.queries
        if query.id.startswith("triggers")
    }
    assert sorted(triggers) == sorted(f"{word} handling rules" for word in WORDS[:4])
    found = triggers["quokka handling rules"]
    assert [key for key, grade in found.items() if grade > 0] == ["docs/one/quokka.md"]
    assert "docs/two/apricot.md" in found  # its title is near, and it lies in another folder
    assert ground.warnings[0] == KNOWN_ITEM
    again = OwnSource(db).ground(ENVIRON)
    assert (again.dataset.queries, again.digest) == (ground.dataset.queries, ground.digest)


@pytest.mark.requirement("E3.windows")
def test_sixty_memories_give_two_windows_of_queries_that_have_none_in_common() -> None:
    pages = sorted((workspace_root(Path(__file__).parent) / "docs" / "decisions").glob("0*.md"))[:60]
    documents = [
        OwnDocument(number, "", DatasetDocument(page.name, page.stem[5:].replace("-", " "), page.read_text()), ())
        for number, page in enumerate(pages)
    ]
    first, second = (own_queries(documents, seed=20, window=window) for window in (1, 2))
    assert (len(first.queries), len(second.queries)) == (ENOUGH_QUERIES, ENOUGH_QUERIES)
    assert not {query.text for query in first.queries} & {query.text for query in second.queries}
    assert not first.judgements.keys() & second.judgements.keys()
    texts = {one.document.key: one.document.text.casefold() for one in documents}
    both = [(query, relevant_keys(first, query.id)) for query in first.queries if query.id.startswith("two_memories")]
    reworded = [(query, relevant_keys(first, query.id)) for query in first.queries if query.id.startswith("rewordings")]
    assert len(both) > 10
    assert all(len(keys) == 2 for _, keys in both)
    assert len(reworded) > 10
    assert all(query.text not in texts[key] for query, (key,) in reworded)
    with refused("E125", match="0 further queries can be made of 5 memories"):
        own_queries(documents[:5], seed=20, window=9)


def relevant_keys(made: OwnQueries, query: str) -> list[str]:
    return [key for key, grade in made.judgements[query].items() if grade > 0]


@pytest.mark.requirement("E3.own")
def test_measuring_on_ones_own_store_changes_no_row_of_it_and_notes_no_use(db: Path) -> None:
    before = content(db)
    report = run(OwnSource(db), ["default", "bm25"], environ=ENVIRON)
    assert report.documents == 8
    assert content(db) == before
    assert not evaluation_file(db).exists()


@pytest.mark.requirement("E3.restraint")
def test_holding_back_is_measured_by_hard_negatives_and_by_questions_that_nothing_answers(db: Path) -> None:
    report = run(OwnSource(db), ["default", "bm25"], environ=ENVIRON)
    default, bm25 = (pipeline.restraint for pipeline in report.pipelines)
    assert default is not None
    assert bm25 is not None
    assert default.unanswerable == len(FOREIGN)
    assert default.warned is not None
    assert default.warned > 0.5
    assert bm25.warned == 0.0  # it has no step that could warn
    assert default.tempted > 0
    assert "unanswerable queries" in said(report)
    assert as_document(report)["pipelines"][0]["restraint"]["tempted"] == default.tempted


def test_a_store_that_is_too_small_says_what_is_missing(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "memory.db", "bm25", root=tmp_path, environ=ENVIRON):
        pass
    with refused("E125", match="the store holds 0 memories; making queries takes at least 5"):
        OwnSource(tmp_path / "memory.db").ground(ENVIRON)
    with refused("E010"):
        OwnSource(tmp_path / "none.db").ground(ENVIRON)


def test_figures_of_ones_own_memories_pair_only_while_these_stay_as_they_are(db: Path) -> None:
    before = OwnSource(db).ground(ENVIRON).digest
    (db.parent / "docs" / "two" / "apricot.md").write_text("# Storage of the apricot archive\n\nNow otherwise.\n")
    with Memory.open(db, "bm25", root=db.parent, environ=ENVIRON) as memory:
        memory.index(db.parent / "docs")
    assert OwnSource(db).ground(ENVIRON).digest != before


def asked(number: int, text: str | None) -> QueryRecord:
    return QueryRecord(
        id=f"{number:016x}", at=float(number), intent="understand", complexity="simple", folder="", mode="auto",
        limit=10, wordings=1, session="", store="s", state=1, question=None if text is None else {"text": text},
    )  # fmt: skip


@pytest.mark.requirement("E3B.use")
def test_queries_are_judged_by_what_was_done_with_their_answers(db: Path) -> None:
    with Memory.open(db, "bm25", root=db.parent, environ=ENVIRON) as memory:
        ids = {record.key: record.id for record in memory.list(limit=100)[0]}
    recorded = [asked(n, f"where do we keep {word}") for n, word in enumerate(WORDS)]
    recorded += [asked(100 + n, f"the {word} loader") for n, word in enumerate(WORDS[:4])]
    uses = [
        UseRecord(query.id, ids[f"docs/{'one' if WORDS.index(word) % 2 else 'two'}/{word}.md"], "opened", 1, 1.0)
        for query, word in zip(recorded, [*WORDS, *WORDS[:4]], strict=True)
    ]
    with EvaluationDatabase.open(evaluation_file(db)) as database:
        answer = AnswerRecord("0" * 16, (), ())
        database.record([Observation(query, answer) for query in recorded], uses=uses)
    ground = OwnSource(db, from_use=True).ground(ENVIRON)
    assert len(ground.dataset.queries) == 12
    assert ground.warnings == (BY_USE,)
    report = compare_pipelines(OwnSource(db, from_use=True), ["bm25", "vector"], environ=ENVIRON)
    assert len(report.queries) == 12
    empty = db.parent / "empty.yaml"
    empty.write_text("extends: none\ncandidates: {channels: [{use: constitutional}]}\nfusion: [{use: rrf}]\n")
    source = OwnSource(db, from_use=True)
    (first, _) = compare_pipelines(source, ["bm25", empty], environ=ENVIRON).comparisons
    gated = gate(source, empty, "bm25", store=db, keep=False, environ=ENVIRON)
    assert (first.delta < -0.5, first.p_adjusted < 0.05) == (True, True)
    assert (first.verdict, first.queries_needed) == ("undecided", None), "what it finds could not be used"
    assert (gated.comparison.comparisons[0].verdict, gated.status) == ("undecided", 0)
    kept = compare_pipelines(source, ["bm25", "vector"], store=db, environ=ENVIRON).id
    assert gate(source, empty, kept, store=db, keep=False, environ=ENVIRON).status == 0
    assert gate(source, empty, "bm25", store=db, keep=False, max_loss=0.1, environ=ENVIRON).status == 1


@pytest.mark.requirement("E3B.use")
def test_uses_of_one_question_are_put_together_and_the_strongest_counts(db: Path) -> None:
    documents = [OwnDocument(7, "", DatasetDocument("a.md", "A", ""), ())]
    recorded = [asked(1, "same"), asked(2, "same"), asked(3, None)]
    uses = [
        UseRecord(asked(1, "").id, 7, "opened", 1, 1.0), UseRecord(asked(2, "").id, 7, "validated", 1, 2.0),
        UseRecord(asked(2, "").id, 99, "opened", 2, 2.0), UseRecord(asked(3, "").id, 7, "opened", 1, 3.0),
    ]  # fmt: skip
    found = judged_by_use(documents, recorded, uses)
    assert [query.text for query in found.queries] == ["same"]
    assert found.judgements == {"used-0001": {"a.md": 3.0}}


@pytest.mark.requirement("E3B.use", "T28.ignored")
def test_what_was_judged_holds_in_place_of_uses_and_what_came_in_vain_is_graded_0(db: Path) -> None:
    with Memory.open(db, "bm25", root=db.parent, environ=ENVIRON) as memory:
        first, second, third, *_ = memory.list(limit=100)[0]
    recorded = [asked(n, f"question {n}") for n in range(10)]
    answer = AnswerRecord("0" * 16, (first.id, second.id, third.id), (3.0, 2.0, 1.0))
    with EvaluationDatabase.open(evaluation_file(db)) as database:
        database.record(
            [Observation(query, answer) for query in recorded],
            uses=[UseRecord(query.id, first.id, "opened", 1, 1.0) for query in recorded],
        )
        database.judge([QueryJudgement(recorded[0].id, second.id, 3, "judged", "me", 2.0)])
    judgements = OwnSource(db, from_use=True).ground(ENVIRON).dataset.judgements
    assert judgements["used-0001"] == {first.key: 1.0, second.key: 3.0, third.key: 0.0}
    assert judgements["used-0002"] == {first.key: 1.0, second.key: 0.0, third.key: 0.0}


def test_without_uses_it_is_said_what_it_takes(db: Path) -> None:
    with pytest.raises(SpeckitError, match="0 recorded queries can be judged by use; 10 are needed") as caught:
        OwnSource(db, from_use=True).ground(ENVIRON)
    assert "keep_texts: 30" in caught.value.problems[0].hint
