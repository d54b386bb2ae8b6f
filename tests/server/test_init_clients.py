"""What `init` says and writes for clients, agents and people."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from files import write_file

from speckit_memory.memory.store.file.guarding.store_file import IGNORED_BEFORE
from tests.server.doors import Ran, call
from tests.server.test_mcp_stdio import calls

FILES = {
    "claude-code": (".mcp.json", "mcpServers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "vscode": (".vscode/mcp.json", "servers"),
    "zed": (".zed/settings.json", "context_servers"),
    "codex": (".codex/config.toml", "mcp_servers"),
    "claude-desktop": ("home/.config/Claude/claude_desktop_config.json", "mcpServers"),
    "windsurf": ("home/.codeium/windsurf/mcp_config.json", "mcpServers"),
}
OF_A_PERSON = ("claude-desktop", "windsurf")
JSON = [name for name in FILES if name != "codex"]


def init(folder: Path, *arguments: str) -> Ran:
    bare = {"SPECKIT_ROOT": "", "SPECKIT_DB": "", "XDG_CONFIG_HOME": "", "HOME": str(folder / "home")}
    return call(folder, ["init", *arguments], bare)


def servers(folder: Path, client: str) -> dict[str, Any]:
    """The servers that a client's file names."""
    name, key = FILES[client]
    text = (folder / name).read_text()
    found: dict[str, Any] = (tomllib.loads(text) if name.endswith(".toml") else json.loads(text))[key]
    return found


@pytest.mark.parametrize("client", FILES)
@pytest.mark.usefixtures("processes")
def test_every_client_starts_the_server_from_its_own_file(tmp_path: Path, client: str) -> None:
    ran = init(tmp_path, "--write", "--client", client, "--json")

    [told] = ran.json["clients"]
    assert (told["name"], told["file"], told["outcome"]) == (client, str(tmp_path / FILES[client][0]), "created")
    entry = servers(tmp_path, client)["speckit-memory"]
    assert entry["args"] == ["serve"]
    if client in OF_A_PERSON:
        assert entry["env"] == {"SPECKIT_ROOT": str(tmp_path)}
        assert os.access(entry["command"], os.X_OK)
    before = (tmp_path / FILES[client][0]).read_bytes()
    assert init(tmp_path, "--write", "--client", client, "--json").json["clients"][0]["outcome"] == "there already"
    assert (tmp_path / FILES[client][0]).read_bytes() == before


@pytest.mark.parametrize("client", FILES)
def test_without_write_nothing_is_written_and_the_entry_is_printed(tmp_path: Path, client: str) -> None:
    ran = init(tmp_path, "--client", client)

    assert f"to add to {tmp_path / FILES[client][0]}" in ran.out
    assert not (tmp_path / FILES[client][0]).exists()
    [told] = init(tmp_path, "--client", client, "--json").json["clients"]
    read = tomllib.loads if client == "codex" else json.loads
    assert read(told["configuration"])[FILES[client][1]]["speckit-memory"]["args"] == ["serve"]


@pytest.mark.parametrize("client", JSON)
def test_what_a_file_says_otherwise_stays_and_a_copy_is_kept(tmp_path: Path, client: str) -> None:
    name, key = FILES[client]
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    before = json.dumps({"first": [1, "ü"], key: {"other": {"command": "x"}}, "last": None}, indent=4).replace(
        "\n", "\r\n"
    )
    file.write_text(before, newline="")

    ran = init(tmp_path, "--write", "--client", client, "--json")

    assert [one["outcome"] for one in ran.json["clients"]] == ["added"]
    after = file.read_bytes().decode()
    assert after.count("\n") == after.count("\r\n")
    assert after.startswith('{\r\n    "first"')
    document = json.loads(after)
    assert list(document) == ["first", key, "last"]
    assert document["first"] == [1, "ü"]
    assert document[key]["other"] == {"command": "x"}
    [copy] = [path for shown, path in ran.json["changed"].items() if shown == name]
    assert (tmp_path / copy).read_bytes().decode() == before


def test_a_table_of_another_program_stays_in_a_toml_file(tmp_path: Path) -> None:
    file = tmp_path / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text('# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "a"\n')

    init(tmp_path, "--write", "--client", "codex")

    assert file.read_text().startswith(
        '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "a"\n\n[mcp_servers.speckit'
    )
    assert set(servers(tmp_path, "codex")) == {"other", "speckit-memory"}


LEFT = {
    "comments": (".zed/settings.json", '{ // mine\n  "theme": "x",\n}\n', "zed", "comments in it would be lost"),
    "a list": (".mcp.json", "[1]", "claude-code", "is not an object"),
    "no object": (".mcp.json", '{"mcpServers": [1]}', "claude-code", "'mcpServers' is not an object"),
    "half": (".cursor/mcp.json", '{"mcpServers": {', "cursor", "it is not plain JSON"),
    "deep": (".cursor/mcp.json", "[" * 100_000, "cursor", "it is not plain JSON"),
    "binary": (".vscode/mcp.json", "\udcff\udcfe", "vscode", "it is not UTF-8"),
    "no toml": (".codex/config.toml", "x = \n", "codex", "it is not TOML"),
    "inline": (".codex/config.toml", "mcp_servers = {a = {command = 'b'}}\n", "codex", "cannot be added to"),
    "changed": (".codex/config.toml", "[mcp_servers.speckit-memory]\ncommand = 'b'\n", "codex", "has other values"),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_cannot_be_added_to_without_a_loss_is_printed_to_be_pasted(tmp_path: Path, case: str) -> None:
    name, content, client, reason = LEFT[case]
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content.encode(errors="surrogateescape"))

    ran = init(tmp_path, "--write", "--client", client).ok()
    assert f"to add to {file} (" in ran.out
    assert reason in ran.out
    assert "speckit-memory" in ran.out.partition(reason)[2]
    assert file.read_bytes() == content.encode(errors="surrogateescape")
    assert {path.name for path in file.parent.iterdir()} - {".speckit", "AGENTS.md", "home"} == {file.name}


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    root, foreign = tmp_path / "project", tmp_path / "foreign"
    (foreign / "cursor").mkdir(parents=True)
    (foreign / "mcp.json").write_text("{}")
    (foreign / "agents.md").write_text("# Theirs\n")
    root.mkdir()
    (root / ".mcp.json").symlink_to(foreign / "mcp.json")
    (root / ".cursor").symlink_to(foreign / "cursor")
    (root / "AGENTS.md").symlink_to(foreign / "agents.md")

    ran = init(root, "--write", "--json")

    assert {one["name"]: one["outcome"] for one in ran.json["clients"]} == {
        "claude-code": "by hand",
        "cursor": "by hand",
    }
    assert set(ran.json["left"]) == {"AGENTS.md"}
    assert (foreign / "mcp.json").read_text() == "{}"
    assert (foreign / "agents.md").read_text() == "# Theirs\n"
    assert list((foreign / "cursor").iterdir()) == []


def test_clients_are_told_by_what_lies_in_the_folder(tmp_path: Path) -> None:
    for sign in (".vscode", ".zed", ".codex", ".cursor", ".claude"):
        (tmp_path / sign).mkdir()

    ran = init(tmp_path, "--write", "--json")

    assert {one["name"] for one in ran.json["clients"]} == {"vscode", "zed", "codex", "cursor", "claude-code"}
    assert all(servers(tmp_path, one["name"]) for one in ran.json["clients"])
    assert not (tmp_path / "home").exists(), "files of a person are written when they are asked for by name"


def test_two_projects_share_a_file_of_a_person(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for folder in ("one", "one more", "one/two/one more"):
        (tmp_path / folder).mkdir(parents=True)
        bare = {"SPECKIT_ROOT": "", "SPECKIT_DB": "", "HOME": str(home)}
        assert call(tmp_path / folder, ["init", "--write", "--client", "windsurf"], bare).status == 0

    found = json.loads((home / ".codeium/windsurf/mcp_config.json").read_text())["mcpServers"]

    assert {name: entry["env"]["SPECKIT_ROOT"] for name, entry in found.items()} == {
        "speckit-memory": str(tmp_path / "one"),
        "speckit-memory-one-more": str(tmp_path / "one more"),
        "speckit-memory-one-more-2": str(tmp_path / "one/two/one more"),
    }


@pytest.mark.requirement("T27.portable")
@pytest.mark.parametrize("client", [name for name in FILES if name not in OF_A_PERSON])
def test_a_file_that_a_team_shares_holds_no_path_of_this_machine(tmp_path: Path, client: str) -> None:
    store = {"SPECKIT_DB": str(tmp_path / "kept" / "memory.db"), "SPECKIT_ROOT": str(tmp_path)}
    assert call(tmp_path, ["init", "--write", "--client", client], store).status == 0
    assert str(tmp_path) not in (tmp_path / FILES[client][0]).read_text()
    entry = servers(tmp_path, client)["speckit-memory"]
    assert entry["command"] == "speckit-memory"
    if client in ("cursor", "vscode"):
        assert entry["env"] == {
            "SPECKIT_ROOT": "${workspaceFolder}",
            "SPECKIT_DB": "${workspaceFolder}/kept/memory.db",
        }
    else:
        assert "env" not in entry


@pytest.mark.requirement("T27.portable")
def test_a_shared_entry_with_paths_gives_way_and_one_of_another_workspace_stays(tmp_path: Path) -> None:
    old = {"command": "/old/place", "args": ["serve"], "env": {"SPECKIT_ROOT": str(tmp_path), "MINE": "1"}}
    other = {"command": "speckit-memory", "args": ["serve"], "env": {"SPECKIT_ROOT": "/srv/other"}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"speckit-memory": old, "theirs": other}}))
    init(tmp_path, "--write")
    shared = {"command": "speckit-memory", "args": ["serve"], "env": {"MINE": "1"}}
    assert servers(tmp_path, "claude-code") == {"speckit-memory": shared, "theirs": other}
    assert init(tmp_path, "--write", "--json").json["clients"][0]["outcome"] == "there already"


@pytest.mark.requirement("T27.portable")
def test_what_a_shared_entry_needs_on_the_path_is_told(tmp_path: Path) -> None:
    bare = {"SPECKIT_ROOT": "", "SPECKIT_DB": "", "PATH": str(tmp_path / "bin")}
    told = call(tmp_path, ["init", "--write", "--client", "claude-code"], bare).out
    assert ".mcp.json: created; it starts `speckit-memory`, which is not on your PATH yet: install it there" in told
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "speckit-memory").touch(0o755)
    told = call(tmp_path, ["init", "--write", "--client", "claude-code"], bare).out
    assert "none is yet" not in told


@pytest.mark.requirement("T27.portable")
def test_a_clone_has_the_schema_that_the_pipeline_file_names(tmp_path: Path) -> None:
    write_file(tmp_path / ".speckit" / ".gitignore", IGNORED_BEFORE)
    init(tmp_path, "--write")
    schema = (tmp_path / ".speckit" / "pipeline.yaml").read_text().splitlines()[0].rpartition("=")[2]
    assert f"!{schema}" in (tmp_path / ".speckit" / ".gitignore").read_text().splitlines()
    assert (tmp_path / ".speckit" / schema).is_file()


def test_an_entry_is_brought_up_to_date_and_keeps_what_people_said_in_it(tmp_path: Path) -> None:
    mine = {"command": "/old/place", "args": ["serve"], "disabled": True, "env": {"SPECKIT_LOG_CONTENT": "1"}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"speckit-memory": mine}}))

    init(tmp_path, "--write")

    entry = servers(tmp_path, "claude-code")["speckit-memory"]
    assert entry["disabled"]
    assert entry["env"] == {"SPECKIT_LOG_CONTENT": "1"}
    assert entry["command"] == "speckit-memory"


def test_agents_are_told_when_to_search_and_what_people_wrote_stays(tmp_path: Path) -> None:
    file = write_file(tmp_path / "AGENTS.md", "# House rules\n\nNo tabs.\n")

    first = init(tmp_path, "--write", "--json").json

    text = file.read_text()
    assert text.startswith("# House rules\n\nNo tabs.\n\n<!-- speckit-memory")
    assert all(tool in text for tool in ("memory_context", "memory_search", "memory_save", "memory_validate"))
    assert (tmp_path / first["changed"]["AGENTS.md"]).read_text() == "# House rules\n\nNo tabs.\n"

    file.write_text(text.replace("memory_search", "memory_find") + "\n# After\n")
    second = init(tmp_path, "--write", "--json").json
    assert file.read_text() == text + "\n# After\n"
    assert second["changed"]["AGENTS.md"] != first["changed"]["AGENTS.md"], "no copy replaces another"
    assert init(tmp_path, "--write", "--json").json["changed"] == {}


def test_the_pipeline_to_start_from_changes_nothing_and_its_examples_hold(tmp_path: Path) -> None:
    write_file(tmp_path / "docs" / "note.md", "# Rank fusion\n\nWe fuse by score.\n")
    bare = {"SPECKIT_ROOT": "", "SPECKIT_DB": ""}
    assert call(tmp_path, ["index", "docs"], bare).status == 0
    before = call(tmp_path, ["search", "fuse", "--json"], bare).json
    init(tmp_path, "--write")

    after = call(tmp_path, ["search", "fuse", "--json"], bare).json

    assert [(row["key"], row["score"]) for row in after["results"]] == [
        (row["key"], row["score"]) for row in before["results"]
    ]
    assert (before["pipeline"]["name"], after["pipeline"]["name"]) == ("default", "workspace")
    file = tmp_path / ".speckit" / "pipeline.yaml"
    schema = file.read_text().splitlines()[0].rpartition("=")[2]
    assert json.loads((file.parent / schema).read_text())["type"] == "object"
    examples = [
        line.removeprefix("# ")
        for line in file.read_text().splitlines()
        if line.startswith(("# candidates:", "#   ", "# shadows:"))
    ]
    assert len(examples) == 4
    file.write_text("pipeline: workspace\nextends: default\n" + "\n".join(examples))
    call(tmp_path, ["pipeline", "check", str(file)], bare).ok()
    assert "limit" in call(tmp_path, ["pipeline", "diff", "default", str(file)], bare).out


def test_the_written_entry_starts_a_server_that_answers(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("# Rank fusion\n\nWe fuse by score.\n")
    init(tmp_path, "--write", "--client", "vscode")
    entry = servers(tmp_path, "vscode")["speckit-memory"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    # as the client puts the opened folder in its place
    env = {name: value.replace("${workspaceFolder}", str(tmp_path)) for name, value in entry["env"].items()}
    [saved] = calls(elsewhere, ("memory_save", {"filePath": "note.md"}), **{"SPECKIT_DB": "", **env})

    assert saved["data"]["outcome"] == "created"
    assert (tmp_path / ".speckit" / "memory.db").exists()


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / ".cursor").write_text("a file where a folder is expected")
    (tmp_path / "AGENTS.md").mkdir()
    ran = init(tmp_path, "--write", "--json")
    assert [(one["name"], one["outcome"]) for one in ran.json["clients"]] == [("cursor", "by hand")]
    assert set(ran.json["left"]) == {"AGENTS.md"}

    schema = tmp_path / ".speckit" / "pipeline.schema.json"
    schema.unlink()
    schema.mkdir()
    error = init(tmp_path, "--write", "--json").refused("E020", 1)
    assert str(schema) in error["message"]


def test_a_broken_configuration_keeps_nobody_from_the_rest(tmp_path: Path) -> None:
    write_file(tmp_path / ".speckit" / "config.yaml", "extensoins: none\n")

    ran = init(tmp_path, "--write", "--json").ok()
    assert "E115" in ran.json["left"][".speckit/pipeline.schema.json"]
    assert "AGENTS.md" in ran.json["created"]


@pytest.mark.requirement("I9.generated")
def test_what_init_wrote_for_agents_is_no_memory_and_what_people_wrote_around_it_is(tmp_path: Path) -> None:
    bare = {"SPECKIT_ROOT": "", "SPECKIT_DB": ""}
    file = tmp_path / "AGENTS.md"
    init(tmp_path, "--write")

    first = call(tmp_path, ["index", ".", "--json"], bare).json
    saved = call(tmp_path, ["save", "AGENTS.md", "--json"], bare)

    assert first["created"] == []
    assert {"key": "AGENTS.md", "reason": "generated: only text that `init` wrote for agents"} in first["ignored"]
    assert (saved.status, saved.json["error"]["code"]) == (2, "E090")
    assert "only text that `init` wrote" in saved.json["error"]["message"]
    assert "1 generated" in call(tmp_path, ["index", "."], bare).out

    file.write_bytes(f"# House rules\r\n\r\nNo tabs.\r\n\r\n{file.read_text()}\r\n# After\r\n\r\nSpaces.\r\n".encode())
    assert call(tmp_path, ["index", ".", "--json"], bare).json["created"] == ["AGENTS.md"]
    shown = call(tmp_path, ["show", "AGENTS.md", "--json"], bare).json
    assert "memory_context" not in shown["text"]
    assert " ".join(shown["text"].split()) == "# House rules No tabs. # After Spaces."
    assert shown["lines"] == [1, len(file.read_text().splitlines())], "lines keep their numbers"
    assert "no memory holds the word" in call(tmp_path, ["search", '"memory_validate"'], bare).out

    file.unlink()
    init(tmp_path, "--write")
    assert call(tmp_path, ["index", ".", "--json"], bare).json["vanished"] == ["AGENTS.md"]
