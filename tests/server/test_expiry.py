"""A date of expiry in front matter, from the door: obeyed, moved, taken away, and told where it is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.server.doors import call

DAY = timedelta(days=1)
NOW = datetime.now(UTC)


def write(root: Path, expires: str, text: str = "The quokka offer ends.") -> None:
    (root / "offer.md").write_text(f"---\n{expires}\n---\n# Offer\n\n{text}\n")


def found(root: Path) -> bool:
    return bool(call(root, ["search", "quokka offer", "--json"]).json["results"])


def indexed(root: Path) -> list[str]:
    return [problem["code"] for problem in call(root, ["index", ".", "--json"]).ok().json["problems"]]


@pytest.mark.requirement("F7", "M5")
def test_a_memory_is_found_until_its_date_and_again_when_that_is_moved(tmp_path: Path) -> None:
    write(tmp_path, f"expires: {NOW + 2 * DAY:%Y-%m-%d}")
    assert (indexed(tmp_path), found(tmp_path)) == ([], True)
    write(tmp_path, f"expires_at: {NOW - DAY:%Y-%m-%dT%H:%M:%SZ}")
    assert (indexed(tmp_path), found(tmp_path)) == ([], False)
    assert call(tmp_path, ["maintain"]).status == 0
    assert "offer.md" in call(tmp_path, ["unarchive"]).out
    write(tmp_path, f"expires: {NOW + 9 * DAY:%Y-%m-%d}")
    assert (indexed(tmp_path), found(tmp_path)) == ([], True)
    assert "offer.md" not in call(tmp_path, ["unarchive"]).out
    write(tmp_path, f"expires: {NOW - 2 * DAY:%Y-%m-%d}")
    assert (indexed(tmp_path), found(tmp_path)) == ([], False)
    write(tmp_path, "tier: normal")
    assert (indexed(tmp_path), found(tmp_path)) == ([], True)


@pytest.mark.requirement("F7", "M5")
def test_who_took_an_expired_memory_back_keeps_it_through_an_edit_that_leaves_the_date(tmp_path: Path) -> None:
    past = f"expires: {NOW - 3 * DAY:%Y-%m-%d}"
    write(tmp_path, past)
    indexed(tmp_path)
    assert call(tmp_path, ["maintain"]).status == 0
    assert call(tmp_path, ["unarchive", "offer.md"]).status == 0
    write(tmp_path, past, "The quokka offer was longer.")
    assert (indexed(tmp_path), found(tmp_path)) == ([], True)


@pytest.mark.requirement("F7", "M5")
@pytest.mark.parametrize("way", [["unarchive", "offer.md"], ["validate", "offer.md", "--useful"]])
@pytest.mark.parametrize("tier", ["normal", "critical"])
def test_what_has_expired_comes_back_before_and_without_its_archival(tmp_path: Path, way: list[str], tier: str) -> None:
    """Background work comes later, and never puts a critical memory away."""
    write(tmp_path, f"expires: {NOW - 3 * DAY:%Y-%m-%d}\nimportance_tier: {tier}")
    assert (indexed(tmp_path), found(tmp_path)) == ([], False)
    assert call(tmp_path, ["validate", "offer.md", "--not-useful"]).status == 0
    assert not found(tmp_path)
    shown = call(tmp_path, ["show", "offer.md", "--json"]).json
    assert shown["archived"] == {"reason": "expired", "since": f"{NOW - 2 * DAY:%Y-%m-%d}T00:00:00+00:00"}
    assert call(tmp_path, way).status == 0
    assert found(tmp_path)
    assert "archived" not in call(tmp_path, ["show", "offer.md", "--json"]).json
    assert call(tmp_path, ["maintain"]).status == 0
    assert found(tmp_path)


@pytest.mark.requirement("I1")
def test_a_day_lasts_to_its_end(tmp_path: Path) -> None:
    write(tmp_path, f"expires: {datetime.now(UTC):%Y-%m-%d}")
    indexed(tmp_path)
    today = datetime.now(UTC).date()
    assert found(tmp_path) or datetime.now(UTC).date() != today


@pytest.mark.requirement("I1")
@pytest.mark.parametrize(("value", "code"), [("soon", "E090"), ("9999-01-01", "E095"), ("[2026-01-01]", "E090")])
def test_what_is_no_date_is_told_and_nothing_expires(value: str, code: str, tmp_path: Path) -> None:
    write(tmp_path, f"expires: {value}")
    assert (indexed(tmp_path), found(tmp_path)) == ([code], True)


@pytest.mark.requirement("I8")
def test_a_renamed_file_keeps_its_end(tmp_path: Path) -> None:
    write(tmp_path, f"expires: {NOW - 3 * DAY:%Y-%m-%d}")
    indexed(tmp_path)
    (tmp_path / "offer.md").rename(tmp_path / "moved.md")
    assert (indexed(tmp_path), found(tmp_path)) == ([], False)
