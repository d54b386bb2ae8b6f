"""Memories written out and brought in through the installed console script."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from files import write_file
from storing.contents import contents

from tests.server.doors import COMMAND, Ran, call, environment


def other(workspace: Path) -> Path:
    """An empty workspace beside it."""
    root = workspace.parent / "other"
    root.mkdir()
    return root


def exported(workspace: Path) -> Path:
    out = workspace.parent / "out"
    call(workspace, ["export", str(out), "--json"]).ok()
    return out


def outcomes(ran: Ran) -> dict[str, str]:
    return {one["key"]: one["outcome"] for one in ran.json["memories"]}


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.requirement("M14", "M14.lossless")
def test_an_export_is_read_edited_and_imported_elsewhere(workspace: Path) -> None:
    call(workspace, ["links", "add", "docs/fusion.md", "supports", "docs/tone.md", "--evidence", "both"]).ok()
    out = workspace.parent / "out"
    made = call(workspace, ["export", str(out), "--json"])
    assert (made.status, made.json["memories"], made.json["without_file"]) == (0, 6, [])
    assert (out / "memories/docs/fusion.md").read_bytes() == (workspace / "docs/fusion.md").read_bytes()

    root = other(workspace)
    dry = call(root, ["import", str(out), "--dry-run", "--json"])
    assert dry.status == 2  # nothing has made a store
    ran = call(root, ["import", str(out), "--json"]).ok()
    assert (ran.json["created"], ran.json["checkpoint"], len(ran.json["written"])) == (6, None, 6)
    assert (root / "docs/fusion.md").read_bytes() == (workspace / "docs/fusion.md").read_bytes()
    indexed = call(root, ["index", "docs", "--json"])
    assert (indexed.json["unchanged"], indexed.json["embedded"]) == (6, 0)
    assert call(root, ["doctor"]).status == 0
    history = call(root, ["links", "history", "docs/fusion.md", "--json"])
    assert "both" in history.out
    again = workspace.parent / "again"
    assert call(root, ["export", str(again)]).status == 0
    assert files(again) == files(out)


@pytest.mark.requirement("M14", "M14.edited")
def test_an_edited_text_is_an_update_and_the_file_before_it_is_kept(workspace: Path) -> None:
    out = exported(workspace)
    text = out / "memories/docs/fusion.md"
    text.write_text(text.read_text() + "\nZebras are fused as well.\n")
    (out / "memories/docs/new.md").write_text("# New\n\nA quagga.\n")
    before = (workspace / "docs/fusion.md").read_bytes()
    ran = call(workspace, ["import", str(out), "--json"]).ok()
    assert [outcomes(ran)[key] for key in ("docs/fusion.md", "docs/new.md", "docs/tone.md")] == [
        "updated", "created", "unchanged",
    ]  # fmt: skip
    assert (workspace / "docs/fusion.md").read_bytes() == text.read_bytes()
    assert (Path(ran.json["aside"]) / "docs/fusion.md").read_bytes() == before
    [found] = call(workspace, ["search", "zebras", "--limit", "1", "--json"]).json["results"]
    assert found["key"] == "docs/fusion.md"
    assert call(workspace, ["checkpoint", "delete", ran.json["checkpoint"]]).status == 0
    assert not Path(ran.json["aside"]).exists()
    # what was taken in is no edit any more
    assert call(workspace, ["export", str(out), "--json"]).json["written"] > 0


@pytest.mark.requirement("M14", "M14.edited")
def test_what_differs_here_is_not_written_over_unless_it_is_to_be_replaced(workspace: Path) -> None:
    out = exported(workspace)
    (workspace / "docs/tone.md").write_text("# Tone\n\nWritten here since.\n")
    (workspace / "docs/fusion.md").write_text("# Fusion\n\nWritten here since, too.\n")
    (out / "memories/docs/fusion.md").write_text("# Fusion\n\nWritten there since.\n")
    assert call(workspace, ["index", "docs"]).status == 0
    before = contents(workspace / "memory.db")
    ran = call(workspace, ["import", str(out), "--json"]).ended(1)
    assert (outcomes(ran)["docs/fusion.md"], outcomes(ran)["docs/tone.md"]) == ("refused", "kept")
    assert "since, too" in (workspace / "docs/fusion.md").read_text()
    assert contents(workspace / "memory.db")["memories"] == before["memories"]

    ran = call(workspace, ["import", str(out), "--replace", "--json"]).ok()
    assert (outcomes(ran)["docs/fusion.md"], outcomes(ran)["docs/tone.md"]) == ("updated", "updated")
    assert "there since" in (workspace / "docs/fusion.md").read_text()
    assert "since, too" in (Path(ran.json["aside"]) / "docs/fusion.md").read_text()
    assert call(workspace, ["index", "docs", "--json"]).json["updated"] == []
    assert call(workspace, ["doctor"]).status == 0


@pytest.mark.requirement("M14", "M14.edited")
def test_what_was_learned_later_counts(workspace: Path) -> None:
    assert call(workspace, ["links", "add", "docs/fusion.md", "supports", "docs/tone.md"]).status == 0
    out = exported(workspace)
    root = other(workspace)
    shutil.copytree(workspace / "docs", root / "docs")
    assert call(root, ["index", "docs"]).status == 0
    ran = call(root, ["import", str(out), "--json"])
    assert outcomes(ran)["docs/fusion.md"] == "updated"
    assert (ran.json["written"], ran.json["aside"]) == ([], None)
    assert call(root, ["links", "add", "docs/fusion.md", "enabled", "docs/tone.md"]).status == 0
    ran = call(root, ["import", str(out), "--json"])
    assert outcomes(ran)["docs/fusion.md"] == "kept"
    assert "enabled" in call(root, ["links", "history", "docs/fusion.md"]).out


@pytest.mark.requirement("M14")
def test_a_folder_of_documents_and_a_single_one_are_copied_and_indexed(workspace: Path) -> None:
    notes = workspace.parent / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / "one.md").write_text("# One\n\nA zebra.\n")
    (notes / "deep" / "two.txt").write_text("A quagga.\n")
    (notes / "empty.md").write_text("\n")
    (notes / "picture.png").write_bytes(b"\x89PNG")
    (notes / "linked").symlink_to(workspace / "docs")
    ran = call(workspace, ["import", str(notes), "--json"])
    assert ran.status == 1  # the empty one
    assert outcomes(ran) == {"notes/one.md": "created", "notes/deep/two.txt": "created", "notes/empty.md": "refused"}
    assert (workspace / "notes/deep/two.txt").read_text() == "A quagga.\n"
    ran = call(workspace, ["import", str(notes / "one.md"), "--into", "inbox", "--json"])
    assert outcomes(ran) == {"inbox/one.md": "created"}
    # they are sources: what is deleted is noticed
    (workspace / "notes/one.md").unlink()
    assert call(workspace, ["index", "notes", "--json"]).json["vanished"] == ["notes/one.md"]


@pytest.mark.requirement("M14")
def test_an_export_is_brought_up_to_date_and_nothing_else_is_written_to(workspace: Path) -> None:
    out = exported(workspace)
    (out / "README").write_text("mine")
    (workspace / "docs/tone.md").unlink()
    (workspace / "docs/new.md").write_text("# New\n")
    assert call(workspace, ["index", "docs"]).status == 0
    ran = call(workspace, ["export", str(out), "--json"])
    assert (ran.json["memories"], ran.json["removed"]) == (6, 1)
    assert not (out / "memories/docs/tone.md").exists()
    assert (out / "README").read_text() == "mine"

    (out / "memories/docs/new.md").write_text("# Edited\n")
    (out / "memories/docs/added.md").write_text("# Added\n")
    (workspace / "docs/added.md").write_text("# Something else\n")
    assert call(workspace, ["index", "docs"]).status == 0
    before = files(out)
    error = call(workspace, ["export", str(out), "--json"]).refused("E064")
    assert "docs/added.md" in error["message"]
    assert "docs/new.md" in error["message"]
    assert files(out) == before
    for target in (workspace / "docs", workspace / "docs/new.md"):
        assert call(workspace, ["export", str(target), "--json"]).json["error"]["code"] == "E064"
    part = call(workspace, ["export", str(out), "--folder", "docs", "--json"])
    assert part.json["error"]["code"] == "E064"
    part = call(workspace, ["export", str(workspace / "backup"), "--folder", "docs/storage", "--json"])
    assert part.json["memories"] == 2
    # an export inside of the workspace is not taken for documents
    assert call(workspace, ["index", ".", "--json"]).json["created"] == []


def rewritten(out: Path, change: Callable[[dict[str, Any]], None]) -> None:
    manifest = json.loads((out / "speckit-export.json").read_text())
    change(manifest)
    (out / "speckit-export.json").write_text(json.dumps(manifest))


def first(**values: Any) -> Callable[[Path], None]:
    return lambda out: rewritten(out, lambda manifest: manifest["memories"][0].update(values))


def head(**values: Any) -> Callable[[Path], None]:
    return lambda out: rewritten(out, lambda manifest: manifest.update(values))


@pytest.mark.requirement("M14", "M14.hostile")
@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda out: (out / "speckit-export.json").write_text('{"speckit_export": 1, "mem'), "E065"),
        (lambda out: (out / "speckit-export.json").write_text("[" * 100_000), "E065"),
        (lambda out: (out / "speckit-export.json").unlink(), "E065"),
        (lambda out: (out / "store.json").write_text("{}\n"), "E065"),
        (head(speckit_export=2), "E025"),
        (head(speckit_export=True), "E065"),
        (head(finished=False), "E065"),
        (head(count=7), "E065"),
        (first(path="../../docs/fusion.md"), "E065"),
        (first(path="/etc/passwd"), "E065"),
        (first(path="docs/storage/wal.md"), "E065"),
        (first(text="x"), "E065"),
        (first(key=7), "E065"),
    ],
)
def test_a_source_that_cannot_be_used_changes_nothing(
    workspace: Path, spoil: Callable[[Path], None], code: str
) -> None:
    out = exported(workspace)
    spoil(out)
    root = other(workspace)
    write_file(root / "docs" / "x.md", "# X\n")
    assert call(root, ["index", "docs"]).status == 0
    before, there = contents(root / "memory.db"), files(root / "docs")
    assert call(root, ["import", str(out), "--json"]).json["error"]["code"] == code
    assert (contents(root / "memory.db"), files(root / "docs")) == (before, there)


def recorded(out: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Alters the record of a memory, and its digest in the manifest as well."""
    from speckit_memory.memory.exchange.manifest import digest

    file = out / "learned/docs/fusion.md.json"
    told = json.loads(file.read_text())
    change(told)
    file.write_text(json.dumps(told))

    def note(manifest: dict[str, Any]) -> None:
        for each in manifest["memories"]:
            if each["key"] == "docs/fusion.md":
                each["learned"] = digest(file.read_bytes())

    rewritten(out, note)


@pytest.mark.requirement("M14", "M14.hostile")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda told: told["memory"].update(confidence="high"), "no store has written"),
        (lambda told: told["memory"].update(stability=-1), "no store has written"),
        (lambda told: told.update(promotions=[{"no such": 1}]), "no store has written"),
        (lambda told: told.update(triggers=[{"source": "learned"}]), "no store has written"),
        (lambda told: told.update(causal_edges=[{"target_id": ["x"], "relation": "supports"}]), "names no memory"),
        (lambda told: told.update(edge_history=[{"changed_at": None}]), "no store has written"),
        (lambda told: told["memory"].update(created_at=1e300), "a time out of range"),
    ],
)
def test_a_record_that_no_store_has_written_undoes_all_of_it(
    workspace: Path, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    out = exported(workspace)
    recorded(out, change)
    root = other(workspace)
    ran = call(root, ["import", str(out), "--json"])
    assert ran.json["error"]["code"] in ("E065", "E066"), ran.out
    assert said in ran.json["error"]["message"]
    assert list(root.rglob("*.md")) == []
    assert call(root, ["search", "ranks", "--json"]).json["results"] == []


@pytest.mark.requirement("M14", "M14.hostile")
def test_memories_that_cannot_be_taken_are_refused_one_by_one(workspace: Path) -> None:
    out = exported(workspace)
    keys = [each["key"] for each in json.loads((out / "speckit-export.json").read_text())["memories"]]
    (out / f"memories/{keys[0]}").unlink()
    (out / f"memories/{keys[1]}").unlink()
    (out / f"memories/{keys[1]}").symlink_to(workspace / "docs/fusion.md")
    (out / f"memories/{keys[2]}").write_bytes(b"\xff\x00\xfe")
    with (out / f"learned/{keys[3]}.json").open("a") as record:
        record.write(" ")

    def harm(manifest: dict[str, Any]) -> None:
        manifest["memories"][4]["key"] = "../outside.md"
        manifest["memories"][5]["key"] = ".git/hooks.md"

    rewritten(out, harm)
    root = other(workspace)
    ran = call(root, ["import", str(out), "--json"]).ended(1)
    assert set(outcomes(ran).values()) == {"refused"}
    assert all(one["why"] for one in ran.json["memories"])
    assert list(workspace.parent.glob("outside.md")) == []
    assert [path for path in root.iterdir() if not path.name.startswith((".speckit", "memory.db"))] == []


@pytest.mark.requirement("M14", "M14.whole")
@pytest.mark.usefixtures("processes")
def test_a_full_disk_leaves_the_store_and_the_files(workspace: Path) -> None:
    (workspace / "docs/big.md").write_text("# Big\n\n" + "Many words about zebras. " * 6000)
    assert call(workspace, ["index", "docs"]).status == 0
    out = exported(workspace)
    root = other(workspace)
    write_file(root / "docs" / "x.md", "# X\n")
    assert call(root, ["index", "docs"]).status == 0
    before, there = contents(root / "memory.db"), files(root / "docs")
    script = 'ulimit -f 64; trap "" XFSZ; exec "$@"'
    for arguments in (["import", str(out)], ["export", str(root.parent / "third")]):
        command = ["bash", "-c", script, "bash", str(COMMAND), *arguments, "--json"]
        at = root if arguments[0] == "import" else workspace
        ran = subprocess.run(command, capture_output=True, env=environment(at), cwd=at, check=False)
        assert ran.returncode in (1, 2), ran.stdout
        assert json.loads(ran.stdout)["error"]["code"] in ("E028", "E064", "E066", "E081"), ran.stdout
    assert (contents(root / "memory.db"), files(root / "docs")) == (before, there)
    # what was begun is completed
    assert call(workspace, ["export", str(root.parent / "third"), "--json"]).json["memories"] == 7
    assert call(root, ["import", str(root.parent / "third"), "--json"]).json["created"] == 7


@pytest.mark.requirement("M14", "M14.whole")
def test_a_file_that_cannot_be_made_undoes_all_of_it(workspace: Path) -> None:
    out = exported(workspace)
    root = other(workspace)
    write_file(root / "docs" / "storage", "a file where a folder is needed")
    assert call(root, ["import", str(out), "--json"]).json["error"]["code"] == "E066"
    assert [path.name for path in (root / "docs").iterdir()] == ["storage"]
    assert call(root, ["search", "ranks", "--json"]).json["results"] == []


@pytest.mark.requirement("M14", "I9")
def test_secrets_are_left_out_of_the_texts(workspace: Path) -> None:
    secret = "AKIAIOSFODNN7ABCDEFG"
    (workspace / "docs/key.md").write_bytes(f"# Key\r\n\r\nIt is {secret} now.\r\n".encode())
    assert call(workspace, ["index", "docs"]).status == 0
    out = workspace.parent / "out"
    assert call(workspace, ["export", str(out), "--json"]).json["secrets"] == 1
    assert not any(secret.encode() in data for data in files(out).values())
    assert (out / "memories/docs/key.md").read_bytes().count(b"\r\n") == 3
    # here, the file with the secret is the same text
    assert outcomes(call(workspace, ["import", str(out), "--json"]))["docs/key.md"] == "unchanged"
