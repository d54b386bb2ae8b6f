"""Which folder is the workspace, who may make a store in it, and what the store's folder tells Git."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from files import write_file

from speckit_memory.config.workspace.options import WorkspaceConfig
from speckit_memory.config.workspace.settings import Settings
from speckit_memory.config.workspace.workspace_file import load_workspace_config
from speckit_memory.errors import SpeckitError
from speckit_memory.server.workspace.workspace import Workspace
from tests.server.doors import Ran, call
from tests.server.test_mcp_stdio import calls

BARE = {"SPECKIT_ROOT": "", "SPECKIT_DB": ""}
"""As in a shell where nothing is set."""


def shell(folder: Path, *arguments: str, home: Path | None = None) -> Ran:
    return call(folder, arguments, {**BARE, "HOME": str(home or folder.parent / "nobody")})


def served(folder: Path, *wanted: tuple[str, dict[str, Any]], home: Path | None = None) -> list[dict[str, Any]]:
    return calls(folder, *wanted, **BARE, HOME=str(home or folder.parent / "nobody"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one note, neither indexed nor under version control."""
    folder = tmp_path / "project"
    write_file(folder / "docs" / "note.md", "# Rank fusion\n\nWe fuse by score.\n")
    return folder


@pytest.mark.parametrize("command", [["search", "x"], ["pipeline", "plan", "x"], ["index", "docs", "--forget"]])
def test_what_reads_makes_no_store_and_says_which_folder_it_looked_at(project: Path, command: list[str]) -> None:
    (project / ".git").mkdir()

    error = shell(project / "docs", *command, "--json").refused("E010")
    assert error["message"] == f"there is no store at {project}/.speckit/memory.db"
    assert f"{project} (the nearest folder with .git" in error["hint"]
    assert "speckit-memory index PATH" in error["actions"][0]
    assert not (project / ".speckit").exists()


def test_doctor_makes_no_store_either(project: Path) -> None:
    assert f"there is no store at {project}/.speckit/memory.db" in shell(project, "doctor").ok().out
    assert not (project / ".speckit").exists()


@pytest.mark.requirement("T27.checked")
def test_a_server_without_a_workspace_starts_and_says_how_to_get_one(project: Path) -> None:
    answers = served(
        project,
        ("memory_search", {"query": "x"}),
        ("memory_index_scan", {}),
        ("memory_save", {"filePath": "docs/note.md"}),
    )

    for answer in answers:
        assert answer["error"]["code"] == "E010"
        assert "contains neither .git nor .speckit" in answer["error"]["message"]
        assert any("SPECKIT_ROOT" in action for action in answer["error"]["actions"])
    assert [entry.name for entry in project.iterdir()] == ["docs"]


def test_a_server_in_a_repository_makes_a_store_when_it_is_told_to_index(project: Path) -> None:
    (project / ".git").mkdir()
    search, missing, checked, scanned, found = served(
        project,
        ("memory_search", {"query": "fuse by score"}),
        ("memory_save", {"filePath": "docs/missing.md"}),
        ("memory_save", {"filePath": "docs/note.md", "dryRun": True}),
        ("memory_index_scan", {}),
        ("memory_search", {"query": "fuse by score"}),
    )

    assert [answer["error"]["code"] for answer in (search, missing, checked)] == ["E010", "E010", "E010"]
    assert "call memory_index_scan" in search["error"]["actions"][0]
    assert (scanned["data"]["created"], found["data"]["count"]) == (1, 1)


@pytest.mark.parametrize("entry", [".git", ".speckit"])
def test_a_server_makes_no_store_in_the_home_folder(tmp_path: Path, entry: str) -> None:
    (tmp_path / entry).mkdir()
    (tmp_path / "note.md").write_text("# Note\n")

    [answer] = served(tmp_path, ("memory_save", {"filePath": "note.md"}), home=tmp_path)

    assert answer["error"]["code"] == "E010"
    assert "it is your home folder" in answer["error"]["message"]
    assert list((tmp_path / entry).iterdir()) == []


def test_the_whole_file_system_is_never_indexed_for_an_agent(tmp_path: Path) -> None:
    """Clients start servers in `/`. The store may exist all the same, where SPECKIT_DB says."""
    store = tmp_path / "memory.db"
    store.touch()
    workspace = Workspace(lambda create: pytest.fail("opened"), Settings(store, "default", Path("/"), {}))

    with pytest.raises(SpeckitError, match="the whole file system is not a workspace"):
        workspace.memory_to_fill(workspace.folder(""))


def test_a_repository_below_a_home_folder_with_a_store_is_its_own_workspace(tmp_path: Path, project: Path) -> None:
    (tmp_path / ".speckit").mkdir()
    inner = shell(project, "index", "docs", home=tmp_path)
    assert inner.out.splitlines()[-1] == f"store {tmp_path}/.speckit/memory.db, workspace {tmp_path}"
    found = shell(project, "search", "fuse by score", home=tmp_path)
    assert found.out.splitlines()[-1] == f"workspace {tmp_path}"

    (project / ".git").write_text("gitdir: /elsewhere\n")
    own = shell(project, "index", "docs", home=tmp_path)
    assert own.out.splitlines()[-1] == f"store {project}/.speckit/memory.db, workspace {project}"


@pytest.mark.usefixtures("processes")
def test_init_makes_the_folder_a_workspace_and_prints_what_a_client_needs(tmp_path: Path, project: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert shell(project, "init", "--write").ok().out.splitlines()[:2] == [
        f"workspace {project}; created .speckit/.gitignore, .speckit/config.yaml, .speckit/pipeline.yaml, "
        ".speckit/pipeline.schema.json, AGENTS.md",
        f"until now this folder belonged to the workspace {tmp_path}",
    ]
    assert load_workspace_config(project) == WorkspaceConfig()
    uncommented = [
        line.removeprefix("# ")
        for line in (project / ".speckit" / "config.yaml").read_text().splitlines()
        if line.startswith(
            ("# sources", "#   ", "# deadline", "# extensions", "# saving", "# evaluation", "# checkpoints")
        )
    ]
    (project / ".speckit" / "config.yaml").write_text("\n".join(uncommented))
    config = load_workspace_config(project)
    assert (len(config.sources.exclude), config.deadline_ms) == (2, 2000.0), "the examples in the file are accepted"

    again = shell(project, "init", "--write", "--json").json
    assert (again["created"], again["store"]) == ([], f"{project}/.speckit/memory.db")
    assert load_workspace_config(project) == config, "a file that is there is left alone"
    server = again["client"]["mcpServers"]["speckit-memory"]
    assert (server["args"], server["env"]) == (["serve"], {"SPECKIT_ROOT": str(project)})
    assert Path(server["command"]).is_file()
    [saved] = served(project, ("memory_save", {"filePath": "docs/note.md"}))
    assert saved["data"]["outcome"] == "created"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs Git")
@pytest.mark.usefixtures("processes")
def test_the_store_is_kept_out_of_git_and_what_people_write_is_not(project: Path) -> None:
    subprocess.run(["git", "init", "-q", project], check=True)
    assert shell(project, "index", "docs").status == 0
    for name in ("pipeline.yaml", "flags.yaml", "config.yaml", "evaluation.db", "memory.db-wal", "segments/1.bin"):
        write_file(project / ".speckit" / name, "")
    subprocess.run(["git", "-C", project, "add", "-A"], check=True)
    listed = subprocess.run(["git", "-C", project, "ls-files"], check=True, capture_output=True, text=True)
    assert listed.stdout.split() == [
        ".speckit/.gitignore", ".speckit/config.yaml", ".speckit/flags.yaml", ".speckit/pipeline.yaml", "docs/note.md",
    ]  # fmt: skip


def test_a_gitignore_of_ones_own_is_left_alone(project: Path) -> None:
    write_file(project / ".speckit" / ".gitignore", "mine\n")
    assert shell(project, "index", "docs").status == 0
    assert (project / ".speckit" / ".gitignore").read_text() == "mine\n"


def test_a_wrong_configuration_is_named_by_every_command_before_a_store_is_made(project: Path) -> None:
    file = write_file(project / ".speckit" / "config.yaml", "sources:\n  exlude: [drafts/]\n")

    for command in (["index", "docs"], ["search", "x"], ["serve"], ["doctor"]):
        ran = shell(project, *command)
        assert ran.status == (1 if command == ["doctor"] else 2)
        assert f"{file}:2:3: E115" in ran.out + ran.err
        assert "did you mean 'exclude'?" in ran.out + ran.err
    assert not (project / ".speckit" / "memory.db").exists()


def test_index_says_what_it_left_out_and_what_only_its_name_brought_in(project: Path) -> None:
    (project / "docs" / "secret.md").write_text("# Secret\n\nA password.\n")
    (project / "docs" / "out.md").symlink_to("/etc/hostname")
    (project / ".gitignore").write_text("secret.md\n")

    ran = shell(project, "index", ".").ok()
    assert "ignored: 1 file (1 by .gitignore); --json lists them" in ran.out
    assert "remarks: 1\nwarning E014: docs/out.md: the link leads out of the workspace" in ran.err

    named = shell(project, "index", "docs/secret.md", "--json").json
    assert named["overruled"] == [{"key": "docs/secret.md", "reason": ".gitignore:1: secret.md"}]
    later = shell(project, "index", ".", "--json").json
    assert (later["vanished"], later["ignored"], later["sources"]) == ([], [], [".", "docs/secret.md"])
    assert shell(project, "index", "docs/out.md").status == 2

    gone = shell(project, "index", "--forget", "docs/secret.md")
    assert (gone.status, gone.out.splitlines()[0]) == (0, "0 created, 0 updated, 0 renamed, 0 unchanged, 1 deleted")
    assert json.loads(shell(project, "search", "password", "--json").out)["results"] == []


def test_forget_goes_with_no_option_that_indexes(project: Path) -> None:
    shell(project, "index", "docs", "--forget", "--force", "--json").refused("E200")


def test_an_agent_may_save_where_the_configuration_or_a_source_opens_a_hidden_folder(project: Path) -> None:
    for name in (".claude", ".opened", ".named", ".closed"):
        write_file(project / name / "n.md", f"# {name}\n\ntext of {name}\n")
    write_file(project / ".speckit" / "config.yaml", "sources:\n  include: [.opened/]\n")
    assert shell(project, "index", ".named").status == 0
    (project / ".named" / "later.md").write_text("# Later\n\nmore text\n")

    *taken, refused = served(
        project,
        *(
            ("memory_save", {"filePath": name})
            for name in (".claude/n.md", ".opened/n.md", ".named/later.md", ".closed/n.md")
        ),
    )

    assert [answer["data"]["outcome"] for answer in taken] == ["created"] * 3
    assert (refused["error"]["code"], refused["error"]["message"]) == ("E014", "'.closed/n.md' is hidden")
    [scan] = served(project, ("memory_index_scan", {}))
    assert (scan["data"]["deleted"], scan["data"]["ignored"]) == (0, 1)
