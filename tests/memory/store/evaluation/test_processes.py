"""Several processes on one file: real ones, that write as answers do, and are killed."""

from __future__ import annotations

import dataclasses
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from speckit_memory.memory.store.evaluation import schema
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.file import EvaluationFile

pytestmark = pytest.mark.usefixtures("processes")

ROOT = Path(__file__).parents[4]

WORKER = """
import itertools, sys, time
from pathlib import Path
from speckit_memory.config.workspace.options import RecordingOptions
from speckit_memory.engine.recording.recorder import Recorder
from speckit_memory.memory.store.evaluation.records import AnswerRecord, Observation, QueryRecord
from speckit_memory.memory.store.evaluation.records import StepCost, VariantRecord

store, name, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
recorder = Recorder(store, RecordingOptions(), seconds=0.02)
steps = tuple(StepCost("rerank", f"step{n}", n / 8, n, n, "ran") for n in range(25))
slowest, count, end = 0.0, 0, time.monotonic() + seconds
while time.monotonic() < end:
    query = QueryRecord(f"{name:04x}{count:012x}", time.time(), "i", "simple", "", "auto", 10, 1, "", "s", 1)
    ids, scores = tuple(range(count, count + 10)), tuple(n / (count + 7) for n in range(10))
    control = AnswerRecord("c" * 12, ids, scores, 4.0, steps)
    variant = VariantRecord("shadow", AnswerRecord("v" * 12, ids[::-1], scores, 4.0, steps[:9]))
    began = time.perf_counter()
    recorder.record(Observation(query, control, (variant,)))
    slowest = max(slowest, time.perf_counter() - began)
    count += 1
    if count % 50 == 0:
        print(count, flush=True)
    time.sleep(0.002)
for _ in range(30):
    if recorder.write():
        break
recorder.close()
print("done", count, slowest, recorder.problem, flush=True)
"""


def start(store: Path, name: int, seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(store), str(name), str(seconds)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    path.touch()
    return path


@pytest.mark.requirement("E1.processes")
def test_four_processes_write_at_once_and_nothing_is_lost(store: Path, path: Path) -> None:
    with ExitStack() as stack:
        workers = [stack.enter_context(start(store, name, 3.0)) for name in range(4)]
        told = [worker.communicate(timeout=120) for worker in workers]
    counts = {}
    for name, (out, err) in enumerate(told):
        done = out.splitlines()[-1].split()
        assert (done[0], done[3], err) == ("done", "None", "")
        counts[name] = int(done[1])
    with EvaluationDatabase.open(path, create=False) as database:
        pairs = database.pairs()
        assert len(pairs) == sum(counts.values())
        assert database.counts()["dropped"] == 0
    for pair in pairs:
        name, count = int(pair.query.id[:4], 16), int(pair.query.id[4:], 16)
        assert count < counts[name]
        assert pair.control.memories == tuple(range(count, count + 10))
        assert pair.variant.answer.memories == pair.control.memories[::-1]
        assert pair.control.scores == tuple(n / (count + 7) for n in range(10))


@pytest.mark.requirement("E1.processes")
def test_processes_that_are_killed_leave_whole_records(store: Path, path: Path) -> None:
    chance = random.Random(7)
    for turn in range(4):
        workers = [start(store, turn * 3 + name, 60.0) for name in range(3)]
        for worker in workers:
            assert worker.stdout is not None
            worker.stdout.readline()
        time.sleep(chance.uniform(0, 0.3))
        for worker in workers:
            worker.kill()
            worker.communicate()
    with EvaluationDatabase.open(path) as database:
        pairs = database.pairs()
        assert len(pairs) == len(database.queries()) == len(database.served())
        seen: dict[str, set[int]] = {}
        for pair in pairs:
            assert len(pair.control.steps) == 25
            assert len(pair.variant.answer.steps) == 9
            seen.setdefault(pair.query.id[:4], set()).add(int(pair.query.id[4:], 16))
        assert seen
        for counts in seen.values():
            assert counts == set(range(len(counts)))  # what was written later is there only with what came before
        with database._file.reading() as connection:
            assert connection.execute("PRAGMA integrity_check").get == "ok"


EARLIER = 3
ROWS = 4_000
FILLED = f"""
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
INSERT INTO queries SELECT i, 'q' || i, i, 'i', 's', '', 'auto', 10, 1, '', 's', 1, '{{"text": "asked"}}' FROM n;
INSERT INTO layouts VALUES (1, '[]');
INSERT INTO answers SELECT number, number, 'c', 'served', x'01', x'02', 1.0, 1, x'03', '' FROM queries;
INSERT INTO dropped SELECT 'c', 'v', 'shadow', 'late', number, 1 FROM queries;
INSERT INTO pipelines VALUES ('c', 'default', '');
"""


def test_an_upgrade_that_is_killed_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = tmp_path / "earlier.db"
    with monkeypatch.context() as before:
        steps = schema.EVALUATION.steps[:EARLIER]
        before.setattr(
            "speckit_memory.memory.store.evaluation.file.EVALUATION",
            dataclasses.replace(schema.EVALUATION, steps=steps),
        )
        file = EvaluationFile(earlier, create=True, busy_timeout_ms=1000)
        with file.writing() as connection:
            connection.execute(FILLED)
        file.close()

    def upgraded(path: Path) -> None:
        shutil.copy(earlier, path)
        EvaluationDatabase.open(path).close()

    began = time.perf_counter()
    upgraded(tmp_path / "whole.db")
    seconds = time.perf_counter() - began
    chance, killed = random.Random(11), 0
    for turn in range(20):
        path = tmp_path / f"{turn}.db"
        child = os.fork()
        if not child:
            upgraded(path)
            os._exit(0)
        time.sleep(chance.uniform(0.2, 1.0) * seconds)
        os.kill(child, signal.SIGKILL)
        killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
        if not path.exists() or path.stat().st_size < earlier.stat().st_size:
            continue  # it had not come to the upgrade
        with EvaluationDatabase.open(path) as database:
            assert [database.counts()[name] for name in ("queries", "dropped")] == [ROWS, ROWS]
            assert list(database.pipelines()) == ["c"]
            with database._file.reading() as connection:
                assert connection.execute("PRAGMA integrity_check").get == "ok"
                assert connection.execute("SELECT count(*) FROM answers").get == ROWS
                done = [name for (name,) in connection.execute("SELECT name FROM migrations ORDER BY rowid")]
        assert done == [step.name for step in schema.EVALUATION.steps]
    assert killed >= 5
    assert list(tmp_path.glob("*before*")) == []
