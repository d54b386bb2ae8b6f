"""What is left out of a document is nowhere in the store, and a document of nothing else makes no memory."""

from __future__ import annotations

import random
import string
from pathlib import Path

import pytest
from storing.by_hand import save_text

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing import Analyser, Indexer, Source
from speckit_memory.memory.models.embedders import StaticEmbedder
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading import reader

SECRET = "ghp_" + "".join(random.Random(3).choices(string.ascii_letters + string.digits, k=36))
TEXT = (
    f"---\ntitle: Deploying with {SECRET}\ntrigger_phrases: [use {SECRET} here]\nowner: {SECRET}\n---\n"
    f"# Deploy {SECRET}\n\nThe token is {SECRET} for now.\n\n<!-- ANCHOR:x -->\n{SECRET}\n<!-- /ANCHOR:x -->\n"
)
ANSWER = "## 1. docs/rrf.md:1-6\nRank fusion · id 2\nfound by bm25 #1\n> We fuse by rank.\n> And more.\n"


def _bytes(database: Database) -> bytes:
    with database.write() as txn:
        txn.connection.execute("SELECT 1")
    database.reader().pragma("wal_checkpoint(TRUNCATE)")
    folder = Path(database.path).parent
    return b"".join(path.read_bytes() for path in folder.glob("memory.db*") if path.is_file())


@pytest.mark.requirement("I9.secrets")
def test_no_secret_is_anywhere_in_the_file_of_the_store(database: Database, indexer: Indexer, root: Path) -> None:
    saved = save_text(indexer, root, "a.md", TEXT, now=1.0)
    (root / "b.md").write_text(TEXT.replace("Deploying", "Releasing"))
    report = indexer.index([root], now=2.0)
    indexer.index_documents([Source("c", f"Text {SECRET}", title=SECRET, triggers=(SECRET,))], now=3.0)

    assert SECRET.encode() not in _bytes(database)
    assert SECRET.lower().encode() not in _bytes(database)
    assert saved.intake.redacted() == report.redacted == {"github token": 6}
    told = [(problem.code, problem.where.line if problem.where else 0) for problem in saved.problems]
    assert told == [("E097", line) for line in (2, 3, 4, 6, 8, 11)]
    assert not any(SECRET in problem.message for problem in saved.problems)
    assert (root / "a.md").read_text() == TEXT
    [passage] = reader.passages_of(database.reader(), saved.id or 0)
    assert passage.text.count("(redacted github token)") == 3
    assert (passage.first_line, passage.last_line) == (6, 12)


@pytest.mark.requirement("I9.secrets")
def test_a_file_whose_name_holds_a_secret_is_refused_without_saying_it(
    database: Database, indexer: Indexer, root: Path
) -> None:
    (root / f"{SECRET}.md").write_text("# A note\n\ntext\n")

    report = indexer.index([root / f"{SECRET}.md"], now=1.0)
    with pytest.raises(SpeckitError) as caught:
        indexer.save_file(root / f"{SECRET}.md", now=1.0)

    assert [problem.code for problem in (*report.failures, *caught.value.problems)] == ["E014", "E014"]
    assert SECRET not in str(report.failures) + str(caught.value)
    assert SECRET.encode() not in _bytes(database)


@pytest.mark.requirement("I9.secrets")
def test_the_setting_keeps_secrets_and_a_change_of_it_reads_every_file_again(
    database: Database, indexer: Indexer, root: Path
) -> None:
    config = root / ".speckit" / "config.yaml"
    config.parent.mkdir()
    config.write_text("saving: {secrets: keep}\n")
    (root / "a.md").write_text(TEXT)

    kept = indexer.index([root], now=1.0)
    stored = reader.body(database.reader(), 1)
    config.write_text("saving: {secrets: credentials}\n")
    changed = indexer.index([root], now=2.0)
    again = indexer.index([root], now=3.0)

    assert (kept.redacted, SECRET in stored) == ({}, True)
    assert (changed.updated, changed.redacted) == (["a.md"], {"github token": 6})
    assert (again.unchanged, again.redacted) == (["a.md"], {})
    assert SECRET not in reader.body(database.reader(), 1)


@pytest.mark.requirement("I9.recalled")
def test_recalled_text_is_left_out_and_told(database: Database, indexer: Indexer, root: Path) -> None:
    saved = save_text(indexer, root, "a.md", f"# Mine\n\nMy own words.\n\n{ANSWER}\nMore of mine.\n", now=1.0)

    assert "We fuse by rank" not in reader.body(database.reader(), saved.id or 0)
    [problem] = saved.problems
    assert (problem.code, problem.where and problem.where.line) == ("E098", 5)
    assert problem.message.startswith("lines 5 to 9 were copied from an answer about docs/rrf.md")


@pytest.mark.requirement("I9.recalled")
def test_a_document_of_recalled_text_alone_makes_no_memory(database: Database, indexer: Indexer, root: Path) -> None:
    with pytest.raises(SpeckitError) as caught:
        save_text(indexer, root, "a.md", ANSWER, now=1.0)
    report = indexer.index([root], now=1.0)

    assert "E098" in [problem.code for problem in caught.value.problems]
    assert (report.created, report.recalled) == ([], 1)
    assert reader.known_files(database.reader()) == {}


@pytest.mark.requirement("I9.secrets")
@pytest.mark.usefixtures("processes")
def test_helpers_take_documents_in_by_the_same_rules(database: Database, embedder: StaticEmbedder, root: Path) -> None:
    indexer = Indexer(database, embedder, Analyser(), root)
    for number in range(1_000):
        (root / f"{number:04}.md").write_text(f"Note {number}\n" + (SECRET if number == 700 else "plain"))

    report = indexer.index([root], now=1.0, processes=1)

    assert len(report.created) == 1_000
    assert report.redacted == {"github token": 1}
