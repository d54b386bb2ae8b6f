"""The demo's live shadow: a second pipeline beside the first, judged by the ground truth that ships."""

from __future__ import annotations

from html import escape
from pathlib import Path

import pytest

from speckit_memory.evaluation import bundled
from speckit_memory.evaluation.datasets.dataset import read
from tests.server.doors import call


@pytest.mark.requirement("E3", "E3.curated")
@pytest.mark.usefixtures("processes")
def test_the_demo_shows_a_live_shadow_with_its_verdict_within_seconds(tmp_path: Path) -> None:
    ran = call(tmp_path, ["demo", "--json", "--keep", "kept.db", "--html", "page.html"])

    shadow = ran.json["shadow"]
    (comparison,) = shadow["comparisons"]
    assert (shadow["variant"], shadow["queries"], comparison["verdict"]) == ("vector", 60, "worse")
    assert shadow["sentence"].startswith("vector is worse than default on nDCG@10")
    assert ran.json["seconds"] < 120
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    shown = [query.text for query in read(bundled.FOLDER).queries if escape(query.text) in page]
    assert shown, "the page shows the queries that differ most in their words"
    assert {path.name for path in tmp_path.iterdir()} >= {"kept.db", "kept.evaluation.db", "page.html"}

    again = call(tmp_path, ["shadow", "report", "--db", "kept.db", "--json"])
    assert [one["id"] for one in again.json["comparisons"]] == [comparison["id"]]


def test_a_pipeline_that_changes_one_value_has_the_shadow_too(tmp_path: Path) -> None:
    ran = call(tmp_path, ["demo", "--pipeline", "rrf", "--set", "rrf.k=30"])

    assert "`vector` answered 60 curated queries too" in " ".join(ran.out.split())
    assert "than rrf" in " ".join(ran.out.split())
    assert "demo --html FILE" in " ".join(ran.out.split())


def test_a_page_that_cannot_be_written_is_told_before_anything_is_done(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Mine\n")

    ran = call(tmp_path, ["demo", "--html", "notes.md"])

    assert (ran.status, "E014" in ran.out + ran.err) == (2, True)
    assert (tmp_path / "notes.md").read_text() == "# Mine\n"
