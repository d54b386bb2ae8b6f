from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from answered import refused
from storing.by_hand import list_edges, save_text

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing import Analyser, Indexer, IndexProgress, IndexReport, SaveResult, Source
from speckit_memory.memory.intake.prediction_error import Verdict
from speckit_memory.memory.models.embedders import StaticEmbedder
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import Relation, Tier
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.pipeline.ports import Tokens, Vectors

Write = Callable[[str, str], Path]
LONG = "\n\n".join(f"## Section {number}\n\n" + f"Sentence {number * 111} of many words. " * 40 for number in range(6))


class OtherModel:
    """Another embedding model: every text lies on one axis."""

    dimensions = 4

    def __init__(self, model_id: str = "other", failing: bool = False) -> None:
        self.model_id = model_id
        self.failing = failing
        self.asked = 0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if self.failing:
            raise SpeckitError("E001", "the model is out of order")
        self.asked += len(texts)
        rows = np.zeros((len(texts), 4), np.float32)
        rows[:, 0] = 1
        return rows

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed_documents([text])[0]
        return vector


@pytest.mark.requirement("I1", "I3", "I4", "I5", "I8")
def test_a_folder_is_indexed_with_everything_its_documents_say(
    database: Database, indexer: Indexer, root: Path, write: Write
) -> None:
    write(
        "docs/rrf.md",
        "---\ntitle: Rank fusion\ntriggers: [RRF]\ntier: important\ncreated: 2026-01-31\n"
        "causalLinks: {supersedes: [old.md]}\n---\nWe decided on RRF. It was decided early.\n",
    )
    write("docs/old.md", "# Score sums\n\nText.\n")
    write("long.md", LONG)

    report = indexer.index([root], now=100.0)

    assert report == IndexReport(
        created=["docs/old.md", "docs/rrf.md", "long.md"],
        chunks=report.chunks,
        embedded=report.chunks,
        characters=report.characters,
        links=1,
        sources=[""],
    )
    memory = reader.get_memory(database.reader(), "docs/rrf.md")
    assert memory == replace(
        memory,
        key="docs/rrf.md",
        title="Rank fusion",
        folder="docs",
        tier=Tier.IMPORTANT,
        context_type="decision",
        document_type="memory",
        created_at=1769817600.0,
        embedding_status="done",
        chunk_count=1,
        triggers=("RRF",),
    )
    (edge,) = list_edges(database.reader())
    old = reader.get_memory(database.reader(), "docs/old.md")
    assert (edge.source_id, edge.target_id, edge.relation) == (memory.id, old.id, Relation.SUPERSEDES)
    long = reader.get_memory(database.reader(), "long.md")
    passages = reader.passages_of(database.reader(), long.id)
    assert len(passages) == long.chunk_count > 1
    assert "".join("".join(p.text for p in passages).split()) == "".join(LONG.split())
    assert database.check() == []


class Fragile(Analyser):
    """An analyser with a defect that two words bring out."""

    def tokens(self, text: str) -> tuple[str, ...]:
        if "endless" in text:
            raise RecursionError("too deep")
        if "broken" in text:
            raise ValueError("no such number")
        return super().tokens(text)


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_document_that_cannot_be_built_fails_alone(
    database: Database, embedder: StaticEmbedder, root: Path, write: Write, dry_run: bool
) -> None:
    write("a.md", "an endless text with a [link](gone.md)")
    bad = write("b.md", "a broken text")
    write("c.md", "a good text")
    indexer = Indexer(database, embedder, Fragile(), root)

    report = indexer.index([root], now=100.0, dry_run=dry_run)

    messages = [
        "E090 a.md: the document cannot be read: RecursionError: too deep",
        "E090 b.md: the document cannot be read: ValueError: no such number",
    ]
    assert (report.created, [str(p) for p in report.failures], report.problems) == (["c.md"], messages, [])
    assert set(reader.known_files(database.reader())) == (set() if dry_run else {"c.md"})
    with pytest.raises(SpeckitError, match=r"E090 b\.md: the document cannot be read"):
        indexer.save_file(bad, now=200.0, force=True)


@pytest.mark.requirement("I6")
def test_each_passage_has_the_vector_of_its_title_headings_and_words(
    database: Database, indexer: Indexer, embedder: StaticEmbedder, root: Path, write: Write
) -> None:
    write("a.md", "# About apples\n\nApples are fruit.\n")
    write("b.md", "# Banking\n\nMoney and interest.\n")
    write("long.md", LONG)
    indexer.index([root], now=100.0)
    connection = database.reader()

    memories, _ = reader.list_memories(connection, sort="key")
    for memory in memories:
        for passage in reader.passages_of(connection, memory.id):
            heading = [passage.heading] if passage.heading else []
            text = "\n".join([*[memory.title] * 3, *heading, passage.text])
            ids, similarities = vectors.nearest_exact(connection, embedder.embed_query(text), 1)
            assert ids.tolist() == [passage.id]
            assert similarities[0] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.requirement("I7", "I8")
def test_a_second_run_touches_only_what_changed(indexer: Indexer, root: Path, write: Write) -> None:
    same, touched, changed, gone = (write(f"{name}.md", f"# {name}\n\ntext\n") for name in "abcd")
    indexer.index([root], now=100.0)
    os.utime(touched, ns=(1, 1))
    changed.write_text("# c\n\nother text\n")
    os.utime(changed, ns=(2, 2))
    gone.unlink()
    write("e.md", "# e\n")

    report = indexer.index([root], now=200.0)

    assert report == IndexReport(
        created=["e.md"],
        updated=["c.md"],
        unchanged=["a.md", "b.md"],
        absent=["d.md"],
        vanished=["d.md"],
        sources=[""],
        chunks=2,
        embedded=2,
        characters=report.characters,
    )
    again = indexer.index([root], now=300.0)
    assert (again.unchanged, again.absent, again.vanished) == (["a.md", "b.md", "c.md", "e.md"], ["d.md"], [])
    assert same.exists()


@pytest.mark.requirement("I8")
def test_a_run_counts_nothing_that_another_did_meanwhile(
    database: Database, indexer: Indexer, root: Path, write: Write
) -> None:
    class Overtaken(StaticEmbedder):
        """While it embeds, another indexer does all the work, and a deleted file comes back."""

        def tokenise(self, texts: Sequence[str]) -> list[Tokens]:
            indexer.index([root], now=200.0)
            (root / "hidden").replace(root / "back.md")
            indexer.index([root], now=300.0)
            return super().tokenise(texts)

    gone, back = write("gone.md", "text of gone"), write("back.md", "text of back")
    changed = write("changed.md", "first text")
    indexer.index([root], now=100.0)
    gone.unlink()
    back.unlink()
    write("hidden", "new text of back")
    changed.write_text("second text")
    os.utime(changed, ns=(1, 1))
    write("new.md", "new text")

    report = Indexer(database, Overtaken(), Analyser(), root).index([root], now=400.0)

    assert report == IndexReport(unchanged=["changed.md", "new.md"], absent=["gone.md"], embedded=2, sources=[""])
    assert reader.keys(database.reader()) == ["back.md", "changed.md", "new.md"]


@pytest.mark.requirement("I7.unchanged")
def test_a_forced_run_takes_the_vectors_of_an_encoder_from_the_cache(
    database: Database, embedder: StaticEmbedder, root: Path, write: Write
) -> None:
    class Encoder:
        """The vectors of the bundled model by one that pools no tokens."""

        model_id, dimensions = "encoder", embedder.dimensions
        embed_documents, embed_query = embedder.embed_documents, embedder.embed_query

    write("long.md", LONG)
    first = Indexer(database, Encoder(), Analyser(), root).index([root], now=100.0)

    forced = Indexer(database, Encoder(), Analyser(), root).index([root], now=200.0, force=True)

    assert (forced.unchanged, forced.embedded, forced.cache_hits) == (["long.md"], 0, first.embedded)


@pytest.mark.requirement("I7.key")
def test_vectors_pooled_of_tokens_are_not_cached(
    indexer: Indexer, database: Database, root: Path, write: Write
) -> None:
    write("long.md", LONG)
    first = indexer.index([root], now=100.0)

    forced = indexer.index([root], now=200.0, force=True)

    assert (forced.unchanged, forced.embedded, forced.cache_hits) == (["long.md"], first.embedded, 0)
    assert database.reader().execute("SELECT count(*) FROM embedding_cache").get == 0


@pytest.mark.requirement("I1", "I8")
def test_what_cannot_be_read_is_reported_and_the_rest_indexed(indexer: Indexer, root: Path, write: Write) -> None:
    write("good.md", "# Good\n\n<!-- ANCHOR:open -->\n")
    (root / "bad.md").write_bytes(b"\xff\xff")
    os.mkfifo(root / "pipe.md")

    report = indexer.index([root, Path("missing")], now=100.0)

    assert report.created == ["good.md"]
    assert [problem.code for problem in report.failures] == ["E014", "E010", "E012"]
    assert [problem.code for problem in report.problems] == ["E091"]


def test_a_dry_run_writes_nothing(database: Database, indexer: Indexer, root: Path, write: Write) -> None:
    gone = write("gone.md", "text")
    indexer.index([root], now=100.0)
    gone.unlink()
    write("new.md", "another text")
    before = database.reader().pragma("data_version"), reader.statistics(database.reader())

    report = indexer.index([root], now=200.0, dry_run=True)

    assert (report.created, report.absent, report.dry_run) == (["new.md"], ["gone.md"], True)
    assert (database.reader().pragma("data_version"), reader.statistics(database.reader())) == before


@pytest.mark.requirement("I8.aliases")
def test_equal_content_under_several_keys_is_reported(indexer: Indexer, root: Path, write: Write) -> None:
    write("a.md", "same text")
    write("b.md", "same text")

    assert indexer.index([root], now=100.0).aliases == [("a.md", "b.md")]
    again = indexer.index([root], now=100.0)
    assert (again.aliases, again.known_aliases) == ([], 1)
    write("c.md", "same text")
    third = indexer.index([root], now=100.0)
    assert (third.aliases, third.known_aliases) == ([("a.md", "b.md", "c.md")], 0)


@pytest.mark.requirement("I8")
def test_links_to_a_file_are_named_once_and_again_when_asked_for(indexer: Indexer, root: Path, write: Write) -> None:
    write("a.md", "text")
    write("sub/b.md", "other text")
    (root / "link.md").symlink_to("a.md")
    (root / "sub" / "link.md").symlink_to("b.md")

    assert indexer.index([root], now=100.0, dry_run=True).aliases == [("a.md", "link.md"), ("sub/b.md", "sub/link.md")]
    assert indexer.index([root], now=100.0).aliases == [("a.md", "link.md"), ("sub/b.md", "sub/link.md")]
    again = indexer.index([root], now=100.0)
    assert (again.aliases, again.known_aliases) == ([], 2)
    forced = indexer.index([root], now=100.0, force=True)
    assert (forced.aliases, forced.known_aliases) == ([("a.md", "link.md"), ("sub/b.md", "sub/link.md")], 0)


@pytest.mark.requirement("I8")
def test_a_link_is_named_again_once_it_was_gone_or_leads_elsewhere(indexer: Indexer, root: Path, write: Write) -> None:
    write("a.md", "text")
    write("b.md", "other text")
    write("sub/c.md", "third text")
    link, other = root / "link.md", root / "sub" / "link.md"
    link.symlink_to("a.md")
    other.symlink_to("c.md")
    indexer.index([root], now=100.0)

    link.unlink()
    indexer.index([root / "sub"], now=100.0)  # says nothing about what lies elsewhere
    link.symlink_to("a.md")
    assert indexer.index([root], now=100.0).aliases == []
    link.unlink()
    indexer.index([root], now=100.0)
    link.symlink_to("a.md")
    assert indexer.index([root], now=100.0).aliases == [("a.md", "link.md")]
    link.unlink()
    link.symlink_to("b.md")
    assert indexer.index([root], now=100.0).aliases == [("b.md", "link.md")]


@pytest.mark.requirement("I9")
def test_a_failing_model_leaves_memories_pending_and_the_next_run_completes_them(
    database: Database, root: Path, write: Write
) -> None:
    write("a.md", "text")
    failed = Indexer(database, OtherModel(failing=True), Analyser(), root).index([root], now=100.0)
    assert ([p.code for p in failed.problems], failed.created, failed.pending) == (["E001"], ["a.md"], 1)

    completed = Indexer(database, OtherModel(), Analyser(), root).index([root], now=200.0)

    assert (completed.unchanged, completed.embedded, completed.pending) == (["a.md"], 1, 0)
    assert database.check() == []


@pytest.mark.requirement("I6", "I7")
def test_another_model_takes_over_all_memories_without_their_files(
    database: Database, indexer: Indexer, root: Path, write: Write
) -> None:
    write("long.md", LONG)
    first = indexer.index([root], now=100.0)
    other = OtherModel()

    report = Indexer(database, other, Analyser(), root).index([], now=200.0)

    one_trial = 1
    assert (report.embedded, other.asked, report.pending) == (first.chunks, one_trial + first.chunks, 0)
    (problem,) = report.problems
    assert problem.code == "E003"
    assert "the configured model is 'other': all memories are embedded again" in problem.message
    assert reader.statistics(database.reader()).embedding_model == "other"
    assert database.check() == []


def test_a_model_that_does_not_work_takes_nothing_over(
    database: Database, indexer: Indexer, root: Path, write: Write
) -> None:
    write("long.md", LONG)
    indexer.index([root], now=100.0)
    before = reader.statistics(database.reader())

    report = Indexer(database, OtherModel(failing=True), Analyser(), root).index([root], now=200.0)

    assert [problem.code for problem in report.problems] == ["E001"]
    assert reader.statistics(database.reader()) == before


def test_one_saved_file_does_not_make_another_model_take_over(
    database: Database, indexer: Indexer, root: Path, write: Write
) -> None:
    write("long.md", LONG)
    indexer.index([root], now=100.0)
    before = reader.statistics(database.reader())
    write("new.md", "# New\n\nA new note.\n")

    saved = Indexer(database, OtherModel(), Analyser(), root).save_file(root / "new.md", now=200.0)

    assert saved.pending
    (problem,) = saved.problems
    assert problem.code == "E003"
    assert "this memory waits for its vectors" in problem.message
    after = reader.statistics(database.reader())
    assert (after.memories, after.pending_embeddings, after.embedding_model) == (2, 1, before.embedding_model)


def test_another_analyser_forces_the_run_and_names_what_it_did_not_reach(
    database: Database, indexer: Indexer, root: Path, write: Write
) -> None:
    write("a/a.md", "text")
    write("b/b.md", "text of b")
    write("c/c.md", "text of c")
    indexer.index([root], now=100.0)
    newer = Analyser()
    newer.version = "newer"
    later = Indexer(database, None, newer, root)

    for folders, message in (
        ([root / "a"], "2 memories, such as b/b.md, hold words of an older analysis"),
        ([root / "a", root / "c"], "1 memory, b/b.md, holds words of an older analysis"),
    ):
        assert [(p.code, p.message) for p in later.index(folders, now=200.0).problems] == [("E093", message)]
    assert later.index([root], now=300.0).problems == []
    assert later.index([root / "a"], now=400.0).problems == []


def test_a_dataset_takes_the_same_way_and_deletes_nothing(database: Database, indexer: Indexer) -> None:
    sources = [
        Source(
            "d1", "# Heading\n\nbody", title="Given", folder="f", tier=Tier.CRITICAL, triggers=("t",), created_at=5.0
        ),
        Source("d2", "one turn of a talk", title=""),
    ]
    seen: list[IndexProgress] = []

    report = indexer.index_documents(iter(sources), now=100.0, progress=seen.append)

    assert (report.created, seen) == (["d1", "d2"], [IndexProgress(2, None, "d2")])
    first, second = (reader.get_memory(database.reader(), key) for key in ("d1", "d2"))
    assert (first.title, first.folder, first.tier) == ("Given", "f", Tier.CRITICAL)
    assert (first.triggers, first.created_at) == (("t",), 5.0)
    # nobody knows when it was written: neither when it was indexed nor in 1970
    assert (second.title, second.created_at, second.updated_at) == ("d2", None, None)
    assert first.updated_at == 5.0
    assert indexer.index_documents(sources, now=200.0).unchanged == ["d1", "d2"]
    assert indexer.index([], now=300.0).absent == []


@pytest.mark.requirement("I9.checks")
def test_a_save_is_checked_before_anything_is_written(database: Database, indexer: Indexer, root: Path) -> None:
    saved = save_text(indexer, root, "a.md", "# A\n\ntext\n", now=100.0)
    expected = SaveResult("a.md", saved.id, "created", (), (), 6, 1, False, Verdict("create"), saved.intake)
    assert saved == expected

    with refused("E092"):
        save_text(indexer, root, "b.md", "# A\n\ntext\n", now=100.0)
    with pytest.raises(SpeckitError) as caught:
        save_text(indexer, root, "c.md", "---\ntier: high\n---\n<!-- ANCHOR:x -->\n", now=100.0)
    assert [problem.code for problem in caught.value.problems] == ["E090", "E091"]
    assert reader.statistics(database.reader()).memories == 1

    forced = save_text(indexer, root, "b.md", "# A\n\ntext\n", now=100.0, force=True)
    assert (forced.outcome, forced.duplicates) == ("created", ("a.md",))
    tried = save_text(indexer, root, "a.md", "# New\n", now=100.0, dry_run=True)
    assert (tried.id, tried.outcome) == (saved.id, "dry_run")
    assert reader.get_memory(database.reader(), "a.md").title == "A"
    assert save_text(indexer, root, "a.md", "# A\n\ntext\n", now=200.0, force=True).outcome == "unchanged"


@pytest.mark.requirement("I1")
def test_an_empty_file_is_no_memory_and_is_reported_with_its_reason(
    database: Database, indexer: Indexer, root: Path, write: Write
) -> None:
    write("empty.md", "")
    write("blank.md", " \n\n")
    write("bare.md", "---\ntitle: Bare\n---\n")
    emptied = write("emptied.md", "text of old")

    indexer.index([emptied], now=100.0)
    emptied.write_text("")
    os.utime(emptied, ns=(1, 1))
    for dry_run in (True, False):
        report = indexer.index([root], now=200.0, dry_run=dry_run)
        assert (report.created, report.updated) == (["bare.md"], ["emptied.md"])
        assert report.failures == []
        assert [str(problem) for problem in report.problems] == [
            "bare.md:4:1: E090 an empty document: nothing follows its front matter",
            "blank.md:1:1: E090 an empty document: the file holds only blanks and line ends",
            "emptied.md:1:1: E090 an empty document: the file holds no characters",
            "empty.md:1:1: E090 an empty document: the file holds no characters",
        ]
    assert set(reader.known_files(database.reader())) == {"bare.md", "emptied.md"}
    assert sorted(indexer.index([root], now=300.0, force=True).unchanged) == ["bare.md", "emptied.md"]


@pytest.mark.requirement("I3")
def test_a_link_to_nothing_is_a_remark_and_one_to_a_later_document_is_not(
    indexer: Indexer, root: Path, write: Write
) -> None:
    path = write("a.md", "---\ncausalLinks:\n  supersedes: [nothere.md, z.md]\n---\ntext")
    write("z.md", "text of z")
    expected = ["a.md:3:16: E090 'nothere.md' names no memory"]

    for dry_run in (True, False):
        report = indexer.index([root], now=100.0, dry_run=dry_run)
        assert (report.created, [str(p) for p in report.problems]) == (["a.md", "z.md"], expected)
    saved = indexer.save_file(path, now=200.0)
    assert (saved.outcome, [str(p) for p in saved.problems]) == ("unchanged", expected)
    later = [Source("d1", "causalLinks:\n  supports: d2\n"), Source("d2", "text of d2")]
    assert indexer.index_documents(later, now=300.0).problems == []


@pytest.mark.requirement("I9")
def test_saving_a_stored_text_again_only_remarks_on_its_twin(indexer: Indexer, root: Path, write: Write) -> None:
    first = write("a.md", "same text")
    write("b.md", "same text")
    indexer.index([root], now=100.0)

    saved = indexer.save_file(first, now=200.0)

    assert (saved.outcome, saved.duplicates) == ("unchanged", ("b.md",))
    assert [str(problem) for problem in saved.problems] == ["E092 a.md has the same content as b.md"]
    assert indexer.save_file(first, now=200.0, dry_run=True).problems == saved.problems
    save_text(indexer, root, "c.md", "own text", now=300.0)
    with refused("E092"):
        save_text(indexer, root, "c.md", "same text", now=300.0)


@pytest.mark.requirement("I9")
def test_a_file_is_saved_alone(indexer: Indexer, root: Path, write: Write) -> None:
    path = write("docs/a.md", "# A\n")
    write("docs/b.md", "# B\n")

    assert indexer.save_file(path, now=100.0).key == "docs/a.md"
    os.mkfifo(root / "pipe.md")
    wrongs = {"docs": "E014", "none.md": "E010", "../x.md": "E014", "pipe.md": "E014"}
    for wrong, code in wrongs.items():
        with refused(code):
            indexer.save_file(root / wrong, now=100.0)


@pytest.mark.parametrize("text", ["word " * 10, "数据库索引"])
def test_a_check_says_how_many_tokens_a_document_has(indexer: Indexer, root: Path, text: str) -> None:
    saved = save_text(indexer, root, "a.md", text, now=1.0, dry_run=True)
    assert saved.tokens == len(StaticEmbedder().tokenise([text])[0])


def test_the_static_model_needs_no_network_and_no_model_code() -> None:
    StaticEmbedder().embed_query("text")

    assert "wordllama" not in sys.modules


@pytest.mark.requirement("I1")
def test_texts_and_names_that_no_encoding_holds_do_not_stop_a_run(
    database: Database, indexer: Indexer, root: Path, write: Write
) -> None:
    write("good.md", "text")
    (Path(os.fsdecode(os.fsencode(root) + b"/bad\xff.md"))).write_text("text")

    report = indexer.index([root], now=100.0)

    assert (report.created, [str(p) for p in report.failures]) == (
        ["good.md"],
        ["E014 bad\\xff.md: the name is not UTF-8"],
    )
    indexer.index_documents([Source("d", "one \ud800 two\r\n", title="t\udfff")], now=100.0)
    memory = reader.get_memory(database.reader(), "d")
    assert (memory.title, reader.body(database.reader(), memory.id)) == ("t\ufffd", "one \ufffd two\n")


def test_what_nobody_dated_has_no_date(database: Database, indexer: Indexer, root: Path, write: Write) -> None:
    # an archive without times unpacks files of 1970
    unpacked = write("unpacked.md", "# Unpacked"), write("dated.md", "---\ndate: 2020-01-01\n---\n# Dated")
    for file in unpacked:
        os.utime(file, ns=(0, 0))

    indexer.index([root], now=100.0)

    times = {m.key: (m.created_at, m.updated_at) for m in reader.list_memories(database.reader())[0]}
    assert times == {"unpacked.md": (None, None), "dated.md": (1577836800.0, 1577836800.0)}
    assert reader.statistics(database.reader()).oldest == 1577836800.0


@pytest.mark.requirement("I8")
def test_a_run_that_ends_between_moving_and_reading_is_finished_by_the_next(
    database: Database, indexer: Indexer, root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("docs/old.md", "# Old\n\nText.\n")
    indexer.index([root], now=1.0)
    before = reader.get_memory(database.reader(), "docs/old.md")
    (root / "new").mkdir()
    (root / "docs" / "old.md").rename(root / "new" / "other.md")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Indexer, "_run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            indexer.index([root], now=2.0)
    moved = reader.get_memory(database.reader(), "new/other.md")
    assert (moved.id, moved.folder) == (before.id, "new")

    finished = indexer.index([root], now=3.0)
    assert (finished.updated, finished.created, finished.absent) == (["new/other.md"], [], [])
    assert database.reader().execute("SELECT path_tokens FROM texts").fetchall() == [("new/other new",)]
    assert indexer.index([root], now=4.0).unchanged == ["new/other.md"]
