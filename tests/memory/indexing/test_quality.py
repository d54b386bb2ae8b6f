from __future__ import annotations

from pathlib import Path

import pytest
from storing.by_hand import save_text

from speckit_memory.config.workspace.options import SavingRules
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing import Analyser, Indexer, Source
from speckit_memory.memory.indexing.documents import build
from speckit_memory.memory.intake.intake import Intake
from speckit_memory.memory.intake.quality import PASS, WEIGHTS, assess, triggers_of_headings
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.records import Document

LONG = "# Rank fusion\n\n" + "We fuse by rank and say why. " * 10
OPEN_ANCHORS = "## Why ranks win\n\n<!-- ANCHOR:a -->\nOne says this.\n\n<!-- ANCHOR:b -->\n## What it costs\n\nTwo.\n"


def _taken_in(text: str, rules: SavingRules | None = None) -> tuple[Document, Intake]:
    intake = Intake()
    document, _ = build(Source("a.md", text), Analyser(), rules=rules or SavingRules(quality="mend"), taken_in=intake)
    return document, intake


@pytest.mark.requirement("I10.score")
@pytest.mark.parametrize(
    ("triggers", "sections", "broken", "body", "parts"),
    [
        (0, 0, 0, LONG, (0.0, 0.5, 1.0, 1.0)),
        (1, 0, 0, LONG, (0.5, 0.5, 1.0, 1.0)),
        (3, 0, 0, LONG, (0.5, 0.5, 1.0, 1.0)),
        (4, 1, 0, LONG, (1.0, 1.0, 1.0, 1.0)),
        (4, 1, 1, LONG, (1.0, 0.5, 1.0, 1.0)),
        (4, 0, 2, LONG, (1.0, 0.0, 1.0, 1.0)),
        (0, 0, 0, "", (0.0, 0.5, 1.0, 0.0)),
        (0, 0, 0, "x" * 50, (0.0, 0.5, 1.0, 0.25)),
        (0, 0, 0, "x" * 51, (0.0, 0.5, 1.0, 0.5)),
        (0, 0, 0, "x" * 201, (0.0, 0.5, 1.0, 0.75)),
        (0, 0, 0, "x" * 8000, (0.0, 0.5, 1.0, 0.75)),
        (0, 0, 0, "x" * 16000, (0.0, 0.5, 0.5, 0.75)),
    ],
)
def test_the_score_weighs_four_parts(
    triggers: int, sections: int, broken: int, body: str, parts: tuple[float, ...]
) -> None:
    found = assess(triggers, sections, broken, body)

    assert tuple(found.parts.values()) == parts
    assert tuple(WEIGHTS.values()) == (0.25, 0.30, 0.20, 0.25)
    assert found.score == pytest.approx(sum(w * p for w, p in zip((0.25, 0.30, 0.20, 0.25), parts, strict=True)))


@pytest.mark.requirement("I10.score")
def test_exactly_six_tenths_pass() -> None:
    assert (assess(0, 0, 0, LONG).score, assess(0, 0, 0, LONG).passed) == (PASS, True)
    assert not assess(0, 0, 0, LONG.replace("# ", "")).passed


@pytest.mark.requirement("I10.mended")
def test_headings_become_triggers_and_open_sections_end_where_the_next_begins() -> None:
    document, intake = _taken_in(OPEN_ANCHORS)

    assert document.triggers == ("Why ranks win", "What it costs")
    assert {chunk.anchor for chunk in document.chunks} <= {"", "a", "b"}
    assert intake.quality is not None
    assert (len(intake.quality.mended), intake.quality.attempts, intake.quality.passed) == (2, 1, True)
    assert document.body == OPEN_ANCHORS


@pytest.mark.requirement("I10.mended")
def test_what_passes_is_not_touched_and_what_nothing_mends_is_tried_no_further() -> None:
    passing, intake = _taken_in(LONG + "\n\n## Two more words\n")
    assert passing.triggers == ()
    assert intake.quality is not None
    assert (intake.quality.attempts, intake.quality.mended) == (0, ())

    _, intake = _taken_in("nothing to mend\n")
    assert intake.quality is not None
    assert (intake.quality.attempts, intake.quality.passed) == (0, False)
    assert intake.quality.issues == ("no trigger phrases", "hardly any text", "no heading")

    told, intake = _taken_in(OPEN_ANCHORS, SavingRules(quality="report"))
    assert told.triggers == ()
    assert intake.quality is not None
    assert intake.quality.score < PASS


@pytest.mark.requirement("I10.mended")
def test_headings_in_code_generic_ones_and_the_title_make_no_triggers() -> None:
    body = (
        "# The title\n\n```\n# in a fence\n```\n## Summary\n## 2. Two **bold** words\n## Session summary\n### "
        + "long " * 20
    )

    assert triggers_of_headings(body, ("The title",)) == ("Two bold words",)


@pytest.mark.requirement("I10.required")
def test_a_workspace_may_refuse_what_stays_poor(database: Database, indexer: Indexer, root: Path) -> None:
    (root / ".speckit").mkdir()
    (root / ".speckit" / "config.yaml").write_text("saving: {quality: require}\n")

    with pytest.raises(SpeckitError, match=r"quality 0\.4\d+, 0\.6 is required: no trigger phrases"):
        save_text(indexer, root, "a.md", "too little\n", now=1.0)
    assert save_text(indexer, root, "a.md", "too little\n", now=1.0, force=True).outcome == "created"
    assert (root / "a.md").read_text() == "too little\n"
