from __future__ import annotations

import dataclasses
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation import observations, schema
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.evaluation.file import EvaluationFile
from speckit_memory.memory.store.evaluation.records import (
    DroppedQueries,
    FlagChange,
    Observation,
    QueryRecord,
)
from speckit_memory.memory.store.file.schema.migrations import Migration


def test_it_lies_beside_the_store_under_a_name_of_its_own() -> None:
    assert evaluation_file(Path("/here/.speckit/memory.db")) == Path("/here/.speckit/memory.evaluation.db")


def test_a_file_of_an_earlier_version_keeps_what_it_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, lost = tmp_path / "memory.evaluation.db", DroppedQueries("c" * 12, "v" * 12, "shadow", "late", 2)
    with monkeypatch.context() as before:
        earlier = dataclasses.replace(schema.EVALUATION, steps=schema.EVALUATION.steps[:3])
        before.setattr("speckit_memory.memory.store.evaluation.file.EVALUATION", earlier)
        with EvaluationDatabase.open(path) as evaluation:
            evaluation.record((), [lost])
            with pytest.raises(SpeckitError):
                evaluation.record((), [dataclasses.replace(lost, why="resume")])

    with EvaluationDatabase.open(path) as evaluation:
        evaluation.record((), [lost, dataclasses.replace(lost, why="resume")])
        [experiment] = evaluation.experiments()

    assert experiment.dropped == {"late": 4, "resume": 2}


def test_questions_are_told_apart_without_their_words_and_in_no_two_files_alike(
    tmp_path: Path, query: Callable[..., QueryRecord], observation: Callable[..., Observation]
) -> None:
    words = ["zebrafish", "zebrafish", "wolpertinger", ""]
    digests = []
    for name in ("one", "other"):
        path = tmp_path / f"{name}.db"
        with EvaluationDatabase.open(path) as evaluation:
            control = observation(1).control
            for number, asked in enumerate(words):
                evaluation.record([Observation(query(number, asked=asked), control)])
            read = evaluation.queries()
            assert [one.question_digest for one in evaluation.queries()] == [one.question_digest for one in read]
        assert all(word not in path.read_bytes() for word in (b"zebrafish", b"wolpertinger"))
        first, again, other, unknown = (one.question_digest for one in read)
        assert (first, unknown) == (again, "")
        assert first != other
        assert len(first) == 16
        assert {one.asked for one in read} == {""}
        digests.append(first)
    assert digests[0] != digests[1]


def test_queries_of_an_earlier_version_are_of_unknown_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, observation: Callable[..., Observation]
) -> None:
    path = tmp_path / "memory.evaluation.db"
    with monkeypatch.context() as before:
        earlier = dataclasses.replace(schema.EVALUATION, steps=schema.EVALUATION.steps[:5])
        before.setattr("speckit_memory.memory.store.evaluation.file.EVALUATION", earlier)
        file = EvaluationFile(path, create=True, busy_timeout_ms=1000)
        with file.writing() as connection:
            connection.execute(
                "INSERT INTO queries VALUES (1, 'q', 1.0, 'i', 's', '', 'auto', 10, 1, '', 's', 1, NULL)"
            )
        file.close()
    with EvaluationDatabase.open(path) as evaluation:
        evaluation.record([observation(1, asked="zebrafish")])
        assert [bool(one.question_digest) for one in evaluation.queries()] == [False, True]


def test_only_its_owner_may_read_it_and_git_leaves_it_out(tmp_path: Path) -> None:
    path = tmp_path / ".speckit" / "memory.evaluation.db"
    EvaluationDatabase.open(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (path.parent / ".gitignore").read_text().splitlines()[1] == "*"


@pytest.mark.requirement("P10.retreat")
def test_the_latest_runs_of_a_variant_are_found_without_looking_at_others(path: Path) -> None:
    key = "c" * 12, "v" * 12
    with EvaluationDatabase.open(path) as evaluation, evaluation._file.reading() as connection:
        for sql, asked in ((observations._LATEST_COSTS, (*key, 0.0, 100, 10)), (observations._TALLY, (*key, "shadow"))):
            plan = [row[-1] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", asked)]
            assert any("answers_by_pipeline (mode=? AND pipeline=?)" in step for step in plan), plan
            assert not {"SCAN answers", "SCAN c", "SCAN p", "SCAN q"} & set(plan), plan


def test_the_oldest_make_room_and_the_file_gets_smaller(
    evaluation: EvaluationDatabase, observation: Callable[..., Observation], path: Path
) -> None:
    evaluation.record([observation(number) for number in range(3000)])
    evaluation.flag_changed(FlagChange("SPECKIT_RSF", "off", "shadow", 1.0, ""))
    with EvaluationDatabase.open(path) as other:  # the log goes into the file when the last user leaves
        evaluation.close()
        other.close()
    before = path.stat().st_size
    while evaluation.prune(before=0.0, max_bytes=before // 2):
        pass
    evaluation.close()
    assert path.stat().st_size < before * 0.7
    assert 500 <= len(evaluation.queries()) < 2900
    assert evaluation.queries()[-1].at == 3999.0
    assert len(evaluation.flag_changes()) == 1


@pytest.mark.parametrize(("before", "words_before", "left"), [(1e9, 0.0, 0), (0.0, 1e9, 900)])
def test_words_that_are_given_up_are_in_no_file(
    path: Path, observation: Callable[..., Observation], before: float, words_before: float, left: int
) -> None:
    def held() -> list[str]:
        return [file.name for file in path.parent.iterdir() if b"zebrafish" in file.read_bytes()]

    with EvaluationDatabase.open(path) as evaluation:
        for number in range(900):
            words = {"text": f"where does the zebrafish {number} live " + "and swim " * (number % 700)}
            evaluation.record([observation(number, question=words)])
        assert evaluation.prune(before=0.0, max_bytes=10**9) == 0
        assert held()

        assert evaluation.prune(before=before, max_bytes=10**9, texts_before=words_before) == 900
        assert held() == []
        assert len(evaluation.queries()) == left
        assert not any(query.question for query in evaluation.queries())


def test_words_in_a_log_that_another_reads_go_with_the_next_look(
    path: Path, observation: Callable[..., Observation]
) -> None:
    log = path.with_name(f"{path.name}-wal")
    with EvaluationDatabase.open(path, busy_timeout_ms=10) as evaluation, EvaluationDatabase.open(path) as other:
        evaluation.record([observation(1, question={"text": "zebrafish"})])
        with other._file.reading() as connection:
            assert connection.execute("SELECT count(*) FROM queries").get == 1
            assert evaluation.prune(before=0.0, max_bytes=10**9, texts_before=1e9) == 1
            assert b"zebrafish" in log.read_bytes()
        assert evaluation.prune(before=0.0, max_bytes=10**9, texts_before=1e9) == 0
        assert b"zebrafish" not in log.read_bytes() + path.read_bytes()


def test_an_upgrade_leaves_no_copy_and_a_failed_one_leaves_the_file_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch, observation: Callable[..., Observation]
) -> None:
    current = schema.EVALUATION
    with EvaluationDatabase.open(path) as evaluation:
        evaluation.record([observation(1, question={"text": "zebrafish"})])
        expected = evaluation.queries()
    path.with_name(f"{path.name}.before-0005_hand_overs_as_a_reason").write_text("zebrafish")  # of an earlier version

    broken = "DELETE FROM queries; SELECT * FROM nothing"
    for statements in (broken, "CREATE TABLE later (a TEXT) STRICT"):
        later = dataclasses.replace(current, steps=(*current.steps, Migration("9998_later", statements)))
        monkeypatch.setattr("speckit_memory.memory.store.evaluation.file.EVALUATION", later)
        if statements == broken:
            with pytest.raises(SpeckitError, match="9998_later"):
                EvaluationDatabase.open(path)
            monkeypatch.undo()
        with EvaluationDatabase.open(path) as evaluation:
            assert evaluation.queries() == expected
    assert [file.name for file in path.parent.glob("*before*")] == []


def test_a_query_is_compared_with_the_latest_ones_of_its_session_alone(
    tmp_path: Path, observation: Callable[..., Observation]
) -> None:
    compared: list[str] = []

    def are_similar(earlier: str, _later: str) -> bool:
        compared.append(earlier)
        return True

    def asked(number: int) -> Observation:
        seen = observation(number, at=1000.0 + number / 10, question={"text": f"q{number}"})
        # no memory is in two answers
        return dataclasses.replace(seen, control=dataclasses.replace(seen.control, memories=(3 * number,) * 3))

    seen = [asked(number) for number in range(30)]
    with EvaluationDatabase.open(tmp_path / "memory.evaluation.db") as evaluation:
        evaluation.record(seen[:-1])
        evaluation.record(seen[-1:], are_similar=are_similar)
    assert compared == [f"q{number}" for number in range(28, 8, -1)]
