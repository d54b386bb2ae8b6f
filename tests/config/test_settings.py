"""Which folder is the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.config.workspace.settings import workspace_root


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    (folder / "project" / "packages" / "a").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    return folder


def test_a_repository_below_another_workspace_is_a_workspace_of_its_own(home: Path) -> None:
    project = home / "project"
    (home / ".speckit").mkdir()
    assert workspace_root(project) == home
    (project / ".git").write_text("gitdir: /elsewhere/.git/worktrees/project\n")  # as worktrees and submodules have it
    assert workspace_root(project / "packages" / "a") == project
    (project / "packages" / "a" / ".speckit").mkdir()
    assert workspace_root(project / "packages" / "a") == project / "packages" / "a"


def test_a_home_folder_under_version_control_takes_no_folder_below_it(home: Path) -> None:
    (home / ".git").mkdir()
    assert workspace_root(home / "project") == home / "project"
    assert workspace_root(home) == home


def test_the_root_of_the_file_system_takes_no_folder_below_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.is_dir
    monkeypatch.setattr(Path, "is_dir", lambda path: path == Path("/.speckit") or real(path))
    assert workspace_root(tmp_path) == tmp_path
    assert workspace_root(Path("/")) == Path("/")


def test_without_a_home_folder_a_workspace_is_found_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", nobody)
    (tmp_path / ".git").mkdir()
    (tmp_path / "docs").mkdir()
    assert workspace_root(tmp_path / "docs") == tmp_path
