"""That nothing is offered is seen without reading all that is installed; whatever could offer something is asked."""

from __future__ import annotations

import sys
import zipfile
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.pipeline.roles.registry import may_be_offered

GROUP = "some.group"
OFFER = "[console_scripts]\nx = y:z\n\n[some.group]\nmine = my_module:register\n"


def offered(folder: Path, name: str, text: str = OFFER) -> Path:
    information = folder / name
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (information / "entry_points.txt").write_text(text)
    return folder


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    return sys.path


@pytest.mark.requirement("P10")
def test_nothing_is_offered_where_nothing_is(path: list[str], tmp_path: Path) -> None:
    path += [
        str(tmp_path / "missing"),
        str(offered(tmp_path / "other", "mine-1.dist-info", "[console_scripts]\nx = y:z\n")),
    ]
    (tmp_path / "other" / "old.egg-info").write_text("Name: old")
    (tmp_path / "other" / "plain-1.dist-info").mkdir()

    assert not may_be_offered(GROUP)
    assert not entry_points(group=GROUP)


@pytest.mark.requirement("P10")
@pytest.mark.parametrize("name", ["mine-1.dist-info", "mine-1.egg-info", "Mine-1.DIST-INFO"])
def test_what_a_distribution_offers_is_found(path: list[str], tmp_path: Path, name: str) -> None:
    path.append(str(offered(tmp_path / "packages", name)))

    assert may_be_offered(GROUP)
    assert [point.name for point in entry_points(group=GROUP)] == ["mine"]


def test_the_working_folder_is_a_place_too(path: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(offered(tmp_path / "packages", "mine-1.dist-info"))
    assert not may_be_offered(GROUP)
    path.insert(0, "")
    assert may_be_offered(GROUP)


def test_a_place_that_is_no_text_may_offer_anything(path: list[Any], tmp_path: Path) -> None:
    path.insert(0, offered(tmp_path / "packages", "mine-1.dist-info"))
    assert may_be_offered(GROUP)
    assert [point.name for point in entry_points(group=GROUP)] == ["mine"]


def test_archives_eggs_and_other_finders_may_offer_anything(
    path: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered(tmp_path / "mine.egg", "egg-info")
    with zipfile.ZipFile(tmp_path / "packages.zip", "w") as archive:
        archive.writestr("mine-1.dist-info/entry_points.txt", OFFER)
    for name in ("mine.egg", "packages.zip"):
        path.append(str(tmp_path / name))
        assert may_be_offered(GROUP)
        path.pop()

    class Finder:
        @staticmethod
        def find_distributions(*_: object) -> list[object]:
            return []

    assert not may_be_offered(GROUP)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert may_be_offered(GROUP)
