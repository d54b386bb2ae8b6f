"""`.speckit/config.yaml`: what it says, and all that is wrong with it, at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.config.workspace.options import WorkspaceConfig
from speckit_memory.config.workspace.settings import CONFIG_FILE
from speckit_memory.config.workspace.workspace_file import load_workspace_config, read_workspace_config
from speckit_memory.errors import SpeckitError


def write(root: Path, text: str | bytes) -> Path:
    file = root / CONFIG_FILE
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def found(root: Path, text: str) -> list[tuple[str, int, int]]:
    write(root, text)
    _, problems = read_workspace_config(root)
    return [(problem.code, problem.where.line, problem.where.column) for problem in problems if problem.where]


def test_sources_and_deadline_are_read_with_their_places(tmp_path: Path) -> None:
    file = write(tmp_path, "deadline_ms: 250\nsources:\n  include: [docs/]\n  exclude:\n    - '*.tmp.md'\n    - '!a'\n")

    config = load_workspace_config(tmp_path)

    assert config.deadline_ms == 250.0
    assert [pattern.text for pattern in config.sources.include] == ["docs/"]
    assert [pattern.text for pattern in config.sources.exclude] == ["*.tmp.md", "!a"]
    assert str(config.sources.exclude[0].where) == f"{file}:5:7"
    assert {key: str(where) for key, where in config.origins.items()} == {
        "deadline_ms": f"{file}:1:1",
        "sources": f"{file}:2:1",
    }


@pytest.mark.parametrize("text", ["", "# nothing but a comment\n", "null\n", "sources:\n", "sources: {include: }\n"])
def test_a_file_that_says_nothing_changes_nothing(tmp_path: Path, text: str) -> None:
    write(tmp_path, text)

    config = load_workspace_config(tmp_path)

    assert (config.sources, config.deadline_ms) == (WorkspaceConfig().sources, 2000.0)


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert load_workspace_config(tmp_path) == WorkspaceConfig()
    (tmp_path / ".speckit").write_text("not a folder")
    assert load_workspace_config(tmp_path) == WorkspaceConfig()


@pytest.mark.requirement("T26")
def test_every_problem_is_reported_at_its_place_with_the_nearest_name(tmp_path: Path) -> None:
    text = "deadline_ms: -1\nsource:\n  include: []\nsources:\n  exlude: [a]\n  include: docs\n"

    assert found(tmp_path, text) == [("E114", 1, 14), ("E115", 2, 1), ("E115", 5, 3), ("E114", 6, 12)]
    with pytest.raises(SpeckitError) as raised:
        load_workspace_config(tmp_path)
    messages = [problem.message for problem in raised.value.problems]
    assert messages == [
        "'deadline_ms' must be a number of milliseconds, 0 for no deadline; found -1",
        "the file has no key 'source'; did you mean 'sources'?",
        "'sources' has no key 'exlude'; did you mean 'exclude'?",
        "'include' must be a list of patterns, such as ['drafts/', '*.tmp.md']; found 'docs'",
    ]
    assert all("pipeline schema" not in action for p in raised.value.problems for action in p.actions)


@pytest.mark.parametrize(
    "pattern", ["'!'", "'a\\'", "'[z-a]'", "'# remark'", "''", "'/'", "'['", "12", "[a]", "./a", "a/../b"]
)
def test_a_pattern_that_can_match_nothing_is_a_mistake(tmp_path: Path, pattern: str) -> None:
    assert found(tmp_path, f"sources:\n  exclude:\n    - ok\n    - {pattern}\n") == [("E114", 4, 7)]


def test_what_is_not_wanted_is_no_pattern_of_what_is(tmp_path: Path) -> None:
    assert found(tmp_path, "sources:\n  include: ['!drafts/']\n  exclude: ['!drafts/']\n") == [("E114", 2, 13)]


def test_a_list_in_the_place_of_the_mapping_is_refused(tmp_path: Path) -> None:
    assert found(tmp_path, "- sources\n") == [("E114", 1, 1)]
    assert found(tmp_path, "sources: [docs]\n") == [("E114", 1, 10)]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = write(tmp_path, b"sources: \xff\xfe\x80")
    assert [str(problem) for problem in read_workspace_config(tmp_path)[1]] == [
        f"E110 {file} cannot be read: it is not UTF-8 text"
    ]
    file.unlink()
    file.mkdir()
    assert [str(problem) for problem in read_workspace_config(tmp_path)[1]] == [
        f"E110 {file} cannot be read: is a directory"
    ]


@pytest.mark.usefixtures("modes_respected")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    file = write(tmp_path, "sources:\n")
    file.chmod(0)
    assert [problem.code for problem in read_workspace_config(tmp_path)[1]] == ["E110"]
