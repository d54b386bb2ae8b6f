"""The gate on saving: each border, each verdict with what follows from it, and what is never done."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from storing.by_hand import list_edges, save_text

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing import Analyser, Indexer
from speckit_memory.memory.intake.contradictions import Contradiction
from speckit_memory.memory.intake.prediction_error import Verdict, band, decide, similarity_of
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import Relation
from speckit_memory.pipeline.ports import Vectors

SURE = Contradiction("obsolescence", 0.80, "It is obsolete.")
UNSURE = Contradiction("clarification", 0.45, "To be clear, it is.")
OLD = "The cache of answers lives in Redis. COS=1"


class Cosines:
    """An embedder whose vector of a text has the cosine to the first axis that the text names as COS=0.87."""

    dimensions = 2
    model_id = "cosines"

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        cosines = [float(found[1]) if (found := re.search(r"COS=([0-9.]+)", text)) else 0.0 for text in texts]
        return np.array([(cosine, (1 - cosine**2) ** 0.5) for cosine in cosines], np.float32)

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed_documents([text])[0]
        return vector


@pytest.fixture
def gate(database: Database, root: Path) -> Indexer:
    return Indexer(database, Cosines(), Analyser(), root)


def _verdict(saved: object) -> Verdict:
    verdict = getattr(saved, "verdict", None)
    assert isinstance(verdict, Verdict)
    return verdict


@pytest.mark.requirement("M6.borders")
@pytest.mark.parametrize(
    ("similarity", "name", "plain", "contradicted"),
    [
        (1.0, "duplicate", "reinforce", "supersede"),
        (0.95, "duplicate", "reinforce", "supersede"),
        (0.9499, "high", "update", "supersede"),
        (0.85, "high", "update", "supersede"),
        (0.8499, "medium", "create", "create"),
        (0.70, "medium", "create", "create"),
        (0.6999, "low", "create", "create"),
        (0.50, "low", "create", "create"),
        (0.4999, "none", "create", "create"),
        (-1.0, "none", "create", "create"),
    ],
)
def test_the_borders_of_the_gate(similarity: float, name: str, plain: str, contradicted: str) -> None:
    assert band(similarity) == name
    assert [decide(similarity, found) for found in (None, UNSURE, SURE)] == [plain, plain, contradicted]


@pytest.mark.requirement("M6.borders")
@pytest.mark.parametrize(
    ("cosine", "kind", "name"),
    [(0.96, "reinforce", "duplicate"), (0.94, "update", "high"), (0.86, "update", "high"), (0.84, "create", "medium"),
     (0.71, "create", "medium"), (0.69, "create", "low"), (0.51, "create", "low"), (0.49, "create", "none")],
)  # fmt: skip
def test_a_saved_file_is_told_what_it_is_to_the_nearest_memory(
    gate: Indexer, root: Path, cosine: float, kind: str, name: str
) -> None:
    save_text(gate, root, "old.md", OLD, now=1.0)
    text = f"Other words about it. COS={cosine}"

    foreseen = save_text(gate, root, "new.md", text, now=2.0, dry_run=True)
    saved = save_text(gate, root, "new.md", text, now=2.0)

    for verdict in (_verdict(foreseen), _verdict(saved)):
        assert (verdict.kind, verdict.band) == (kind, name)
        assert verdict.similarity == pytest.approx(cosine, abs=1e-3)
        assert verdict.key == ("" if name == "none" else "old.md")
    assert (foreseen.outcome, saved.outcome) == ("dry_run", "created")


@pytest.mark.requirement("M6.supersede")
def test_what_takes_a_memory_back_marks_it_as_superseded(database: Database, gate: Indexer, root: Path) -> None:
    old = save_text(gate, root, "old.md", OLD, now=1.0)
    text = "The cache of answers is obsolete. COS=0.9"

    assert save_text(gate, root, "new.md", text, now=2.0, dry_run=True).id is None
    assert list_edges(database.reader()) == []
    new = save_text(gate, root, "new.md", text, now=2.0)

    [edge] = list_edges(database.reader())
    assert (edge.source_id, edge.target_id, edge.relation) == (new.id, old.id, Relation.SUPERSEDES)
    assert (edge.strength, edge.created_by) == (0.5, "prediction_error")
    assert edge.evidence == "similarity 0.90; obsolescence (0.80): The cache of answers is obsolete."
    verdict = _verdict(new)
    assert (verdict.kind, verdict.key, verdict.id) == ("supersede", "old.md", old.id)
    assert verdict.contradiction is not None
    assert verdict.contradiction[:2] == ("obsolescence", 0.80)
    assert verdict.done == "old.md is marked as superseded, by an edge of prediction_error"
    # superseded memories are not live: the next one is compared with what superseded them
    again = _verdict(save_text(gate, root, "newer.md", "COS=0.99 The cache of answers", now=3.0))
    assert again.key == "new.md"


@pytest.mark.requirement("M6.reinforce")
def test_a_repetition_counts_as_a_use_and_is_stored_all_the_same(database: Database, gate: Indexer, root: Path) -> None:
    old = save_text(gate, root, "old.md", OLD, now=1.0)

    saved = save_text(gate, root, "new.md", "The answers are cached in Redis. COS=0.97", now=5.0)

    memory = reader.get_memory(database.reader(), "old.md")
    assert (memory.id, memory.access_count, memory.last_accessed) == (old.id, 1, 5.0)
    reviewed = database.reader().execute("SELECT review_count, last_review FROM memories WHERE id = ?", (old.id,)).get
    assert reviewed == (1, 5.0)
    assert _verdict(saved).done == "old.md counts as used and reviewed once more"
    assert reader.body(database.reader(), saved.id or 0).startswith("The answers are cached")


@pytest.mark.requirement("M6.path")
def test_an_edit_of_the_same_path_is_always_an_update(database: Database, gate: Indexer, root: Path) -> None:
    first = save_text(gate, root, "a.md", OLD, now=1.0)

    same = save_text(gate, root, "a.md", OLD, now=2.0)
    edited = save_text(gate, root, "a.md", "The cache of answers is obsolete. COS=0.99", now=3.0)

    assert (_verdict(first).kind, _verdict(same).kind, _verdict(edited).kind) == ("create", "update", "update")
    assert _verdict(edited) == Verdict("update", key="a.md", id=first.id, done="its memory was updated")
    assert (same.outcome, edited.outcome) == ("unchanged", "updated")
    assert list_edges(database.reader()) == []
    assert reader.get_memory(database.reader(), "a.md").access_count == 0


@pytest.mark.requirement("M6.duplicate")
def test_the_same_content_is_refused_with_its_evidence_and_kept_by_force(gate: Indexer, root: Path) -> None:
    old = save_text(gate, root, "old.md", OLD, now=1.0)

    foreseen = save_text(gate, root, "new.md", OLD, now=2.0, dry_run=True)
    with pytest.raises(SpeckitError, match=r"new\.md has the same content as old\.md"):
        save_text(gate, root, "new.md", OLD, now=2.0)
    forced = save_text(gate, root, "new.md", OLD, now=2.0, force=True)

    for verdict in (_verdict(foreseen), _verdict(forced)):
        assert (verdict.kind, verdict.key, verdict.id, verdict.similarity) == ("duplicate", "old.md", old.id, 1.0)
    assert forced.outcome == "created"


@pytest.mark.requirement("M6.override")
@pytest.mark.parametrize("how", ["force", "configured"])
def test_force_and_the_configuration_leave_it_at_the_verdict(
    database: Database, gate: Indexer, root: Path, how: str
) -> None:
    if how == "configured":
        (root / ".speckit").mkdir()
        (root / ".speckit" / "config.yaml").write_text("saving: {prediction_error: report}\n")
    save_text(gate, root, "old.md", OLD, now=1.0)

    saved = save_text(gate, root, "a.md", "The cache of answers is obsolete. COS=0.9", now=2.0, force=how == "force")
    repeated = save_text(gate, root, "b.md", "Said again. COS=0.999", now=2.0, force=how == "force")

    assert [(_verdict(each).kind, _verdict(each).done) for each in (saved, repeated)] == [
        ("supersede", "nothing"),
        ("reinforce", "nothing"),
    ]
    assert list_edges(database.reader()) == []
    assert reader.get_memory(database.reader(), "old.md").access_count == 0


@pytest.mark.requirement("M6.supersede")
@pytest.mark.parametrize(("tier", "done"), [("critical", "nothing: old.md is critical"), ("deprecated", "")])
def test_protected_memories_are_not_superseded_and_deprecated_ones_not_compared(
    database: Database, gate: Indexer, root: Path, tier: str, done: str
) -> None:
    save_text(gate, root, "old.md", f"---\ntier: {tier}\n---\n{OLD}", now=1.0)

    verdict = _verdict(save_text(gate, root, "new.md", "The cache of answers is obsolete. COS=0.9", now=2.0))

    assert verdict.kind == ("supersede" if done else "create")
    assert verdict.done.startswith(done)
    assert list_edges(database.reader()) == []


@pytest.mark.requirement("M6.index")
def test_an_index_run_tells_and_does_nothing(database: Database, gate: Indexer, root: Path) -> None:
    (root / "old.md").write_text(OLD)
    first = gate.index([root], now=1.0)
    (root / "new.md").write_text("The cache of answers is obsolete. COS=0.9")
    (root / "other.md").write_text("Of something else. COS=0.1")

    report = gate.index([root], now=2.0)

    assert first.verdicts == {}
    assert {key: (verdict.kind, verdict.key) for key, verdict in report.verdicts.items()} == {
        "new.md": ("supersede", "old.md")
    }
    assert list_edges(database.reader()) == []


@pytest.mark.requirement("M6.borders")
def test_a_note_inside_of_a_long_document_is_no_duplicate_of_it() -> None:
    axes = np.eye(4, dtype=np.float32)

    assert similarity_of(axes[:1], axes) == similarity_of(axes, axes[:1]) == 0.25
    assert similarity_of(axes, axes[::-1]) == 1.0
    assert similarity_of(axes[:0], axes) == 0.0


@pytest.mark.requirement("M6.borders")
def test_what_has_no_vectors_is_not_compared(database: Database, gate: Indexer, root: Path) -> None:
    save_text(gate, root, "old.md", OLD, now=1.0)

    saved = save_text(Indexer(database, None, Analyser(), root), root, "new.md", "Said again. COS=1", now=2.0)

    assert saved.pending
    assert _verdict(saved) == Verdict("create", done="nothing: it has no vectors to compare")
