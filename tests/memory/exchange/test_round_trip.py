"""What is exported, imported into an empty workspace and exported again is equal, byte by byte; so is every answer."""

from __future__ import annotations

import json
import random
from pathlib import Path

import apsw
import pytest
from files import write_file
from storing.project import QUESTIONS, living

from speckit_memory.engine import Memory
from speckit_memory.memory.indexing import Source
from speckit_memory.memory.store.transfer.table_map import PORTABLE
from tests.memory.store.transfer.test_every_table import DOCUMENTS, ROWS

NOW = 1_790_000_000.0


def files(folder: Path) -> dict[str, bytes]:
    """What a folder holds, by relative path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def opened(root: Path) -> Memory:
    """A store of its own that notes nothing of searches."""
    root.mkdir(exist_ok=True)
    return Memory.open(root / ".speckit" / "memory.db", root=root, environ={}, shadows=False)


def answers(memory: Memory) -> list[list[tuple[str, float, str]]]:
    """What is found, by key: ids are those of one store."""
    found = []
    for question in QUESTIONS:
        rows = memory.search(question.text, **{"limit": 20, "now": NOW, "deadline_ms": None} | question.arguments)
        found.append([(row.key, row.score, row.snippet) for row in rows.results])
    return found


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """A workspace of files whose store has rows in every table; two memories that rows tell of are gone."""
    root = tmp_path / "full"
    for document in DOCUMENTS:
        write_file(root / document.key, document.text)
    with opened(root) as memory:
        memory.index([root / "a", root / "b"])
        memory.index_documents([Source("MED-1", "No front matter, and no file.", title="Of a dataset", created_at=5.0)])
    with apsw.Connection(str(root / ".speckit" / "memory.db")) as connection:
        ids = {Path(key).stem: number for number, key in connection.execute("SELECT id, key FROM memories")}
        rows = ROWS.replace(
            "INTO selections VALUES", "INTO selections VALUES ('q', 78, 'cited', 2, 2.0, 2.0, 'shadow', '', '[]'),"
        ).replace("INSERT INTO absences VALUES ({third}, 1.0, NULL);", "")  # what is absent is not exported
        connection.execute(rows.format(**ids) + "UPDATE id_sequence SET next = 100;")
        connection.execute(
            "INSERT INTO triggers VALUES (?1, 'learned', 'way', 'way', 0, 0.7, 3.0, 9e9);", (ids["first"],)
        )
        connection.execute(
            "UPDATE memories SET tier = 'critical', confidence = 0.9, stability = 7 WHERE id = ?", (ids["first"],)
        )
        connection.execute(
            "UPDATE memories SET review_count = 3, last_review = 4.0, expires_at = 9e9, access_count = 2"
        )
    connection.close()
    return root


@pytest.mark.requirement("M14", "M14.lossless")
@pytest.mark.usefixtures("in_a_file")
def test_every_table_comes_along(full: Path, tmp_path: Path) -> None:
    with opened(full) as memory:
        done = memory.exchange.export(tmp_path / "out")
    assert (done.memories, done.without_file) == (4, ())
    told: dict[str, list[object]] = json.loads((tmp_path / "out" / "store.json").read_text())
    for record in (tmp_path / "out" / "learned").rglob("*.json"):
        told |= {name: rows for name, rows in json.loads(record.read_text()).items() if isinstance(rows, list)}
    assert set(told) == {table.name for table in PORTABLE}

    with opened(tmp_path / "other") as memory:
        assert memory.exchange.import_from(tmp_path / "out").count("created") == 4
        assert memory.session.database.check() == []
        again = memory.exchange.export(tmp_path / "again")
        assert memory.exchange.import_from(tmp_path / "out").count("unchanged") == 4
        assert memory.exchange.export(tmp_path / "again").written == 0
        report = memory.index([tmp_path / "other" / "a", tmp_path / "other" / "b"])
        assert (len(report.unchanged), report.embedded, report.updated, report.deleted) == (3, 0, [], [])
    assert again.memories == 4
    assert files(tmp_path / "again") == files(tmp_path / "out")


@pytest.mark.requirement("M14", "M14.lossless")
def test_a_living_project_answers_as_before(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    with living(tmp_path / "project", NOW):
        pass
    store = tmp_path / "project" / "memory.db"
    with Memory.open(store, root=tmp_path / "project", environ={}, shadows=False) as memory:
        memory.lifecycle.maintain()
        memory.exchange.export(tmp_path / "out")
        before = answers(memory)
    with opened(tmp_path / "other") as memory:
        done = memory.exchange.import_from(tmp_path / "out")
        assert done.count("created") == len(done.memories)
        memory.exchange.export(tmp_path / "again")
        memory.lifecycle.maintain()
        assert answers(memory) == before
        report = memory.index([tmp_path / "other"])
        assert (len(report.unchanged), report.embedded) == (len(done.memories), 0)
    assert files(tmp_path / "again") == files(tmp_path / "out")


TEXTS = (
    "# Title\n\nA text.\n",
    '---\ntitle: "Quoted: yes"\nimportance_tier: important\nauthor: somebody\n---\nBody\r\nwith other ends\r\n',
    "\ufeff# With a mark\n\n設計の決定はここに書く。\n",
    "---\ntriggers: [one, two words]\ncausalLinks:\n  caused_by: [{other}]\n  related_to: [{other}]\n---\nLinks.\n",
    "No heading at all, and no line end",
    "\n\n\n# After blank lines\n\n- [ ] a task\n\n```yaml\n---\nkey: value\n---\n```\n",
    "---\nlist: [1, 2.5, null, {{a: b}}]\ndate: 2024-02-29\n---\n\n---\n\nA break first.\n",
)
NAMES = ("note", "Note", "a b", "ü", "con", "x.y", "deep/er/note", "specs/spec", "NOTE")


@pytest.mark.requirement("M14", "M14.lossless")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("in_a_file")
def test_seeded_stores_come_back_equal(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    root = tmp_path / "one"
    root.mkdir()
    keys = [f"{drawn.choice(('d', 'd/e', 'f'))}/{name}{drawn.choice(('.md', '.txt', '.mdc'))}" for name in NAMES]
    for number, key in enumerate(keys):
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        text = drawn.choice(TEXTS).replace("{other}", drawn.choice(keys)) + f"\nNumber {number}.\n" * drawn.randint(
            0, 1
        )
        (root / key).write_bytes(text.encode())
    loose = [
        Source(
            f"{name}{number}", drawn.choice(TEXTS), title=drawn.choice((None, "", "T")), created_at=float(number + 1)
        )
        for number, name in enumerate(("DOC-", "a/../b", "/etc/", "memo.md", "..", "c:\\x", "é" * 300))
    ]
    with opened(root) as memory:
        memory.index([root / "d", root / "f"] if (root / "f").is_dir() else [root])
        memory.index_documents(loose)
        for key in drawn.sample(keys, 4):
            memory.learning.validate(key, useful=drawn.random() < 0.6)
        memory.graph.link(keys[0], "supports", keys[1], strength=0.4, evidence='because "so"\n')
        memory.learning.preflight("d", "t1", knowledge=10, uncertainty=50, context=20)
        if drawn.random() < 0.5:  # a file that is gone before the export, and comes back with the import
            (root / keys[2]).unlink()
        memory.exchange.export(tmp_path / "out")
        before = known(memory)
    with opened(tmp_path / "two") as memory:
        done = memory.exchange.import_from(tmp_path / "out")
        assert {one.outcome for one in done.memories} == {"created"}
        assert known(memory) == before
        memory.exchange.export(tmp_path / "again")
        assert memory.session.database.check() == []
        assert {one.outcome for one in memory.exchange.import_from(tmp_path / "again").memories} == {"unchanged"}
    assert files(tmp_path / "again") == files(tmp_path / "out")


def known(memory: Memory) -> dict[str, tuple[object, ...]]:
    shown = memory.list(limit=1000)[0]
    return {one.key: (one.tier, one.title, one.triggers, one.confidence) for one in shown}
