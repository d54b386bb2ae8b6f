from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.scanning import scanner
from speckit_memory.memory.scanning.scanner import FoundFile, Scan, decide, scan
from speckit_memory.memory.store.reading.reader import KnownFile

Write = Callable[[str, str], Path]


def known(mtime_ns: int | None, ctime_ns: int | None = 7) -> KnownFile:
    return KnownFile(1, mtime_ns, "hash", "done", ctime_ns)


@pytest.mark.requirement("I8")
def test_documents_below_the_paths_are_found_and_working_folders_passed_over(root: Path, write: Write) -> None:
    for key in ("a.md", "b/c.TXT", "b/d.markdown", "b/e.py", ".git/f.md", "node_modules/g.md", "b/.h.md"):
        write(key, "text")

    found = scan([Path(), root / "b"], root)

    assert sorted(found.files) == ["a.md", "b/c.TXT", "b/d.markdown"]
    assert found.covered == ["", "b"]
    assert (found.problems, found.missing, found.hidden) == ([], [], [])


def test_links_that_loop_end_and_a_file_is_taken_once(root: Path, write: Write) -> None:
    write("a/note.md", "text")
    (root / "a" / "loop").symlink_to(root)
    (root / "b.md").symlink_to(root / "a" / "note.md")

    found = scan([root], root)

    assert len(found.files) == 1
    assert len(found.links) == 1


@pytest.mark.requirement("I8")
def test_links_that_leave_the_workspace_are_reported_and_not_followed(root: Path, write: Write) -> None:
    write("good.md", "text")
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret", encoding="utf-8")
    (root / "file.md").symlink_to(outside / "secret.md")
    (root / "folder").symlink_to(outside)
    (root / "relative.md").symlink_to(Path("../outside/secret.md"))
    (root / "script.py").symlink_to(outside / "secret.md")

    found = scan([root, root / "folder" / "secret.md"], root)

    left = ["file.md", "folder", "relative.md", "folder/secret.md"]
    assert list(found.files) == ["good.md"]
    said = [f"E014 {key}: the link leads out of the workspace" for key in left]
    assert [str(problem) for problem in found.remarks] == said[:-1]
    assert [str(problem) for problem in found.problems] == said[-1:], "only what was named is the caller's mistake"
    assert found.hidden == left
    assert decide(found, {"folder/secret.md": known(1)}).gone == ()


def test_a_root_that_is_a_link_itself_is_scanned(root: Path, write: Write) -> None:
    write("note.md", "text")
    link = root.parent / "link"
    link.symlink_to(root)

    found = scan([link], link)

    assert (list(found.files), found.problems) == (["note.md"], [])


@pytest.mark.requirement("I8")
def test_what_is_no_regular_file_is_reported_without_being_opened(root: Path, write: Write) -> None:
    write("good.md", "text")
    os.mkfifo(root / "pipe.md")
    (root / "link.md").symlink_to(root / "pipe.md")

    found = scan([root, root / "pipe.md"], root)

    assert list(found.files) == ["good.md"]
    assert [str(problem) for problem in found.problems] == [
        f"E014 {key}: not a regular file" for key in ("pipe.md", "link.md", "pipe.md")
    ]


@pytest.mark.usefixtures("modes_respected")
def test_an_unreadable_folder_is_reported_and_hidden(root: Path, write: Write) -> None:
    write("closed/note.md", "text")
    (root / "closed").chmod(0)
    try:
        found = scan([root], root)
    finally:
        (root / "closed").chmod(0o700)

    assert [problem.code for problem in found.problems] == ["E011"]
    assert found.hidden == ["closed"]


def test_paths_outside_the_workspace_are_refused_and_missing_ones_noted(root: Path) -> None:
    found = scan([Path("../other"), Path("gone.md")], root)

    assert [problem.code for problem in found.problems] == ["E014"]
    assert found.missing == ["gone.md"]


@pytest.mark.requirement("I8.six")
@pytest.mark.parametrize(
    ("stored", "on_disk", "force", "path"),
    [
        (known(5), None, False, "gone"),
        (None, 5, False, "read"),
        (known(None), 5, False, "read"),
        (known(5), 5, False, "skip"),
        (known(5), 6, False, "read"),
        (known(5, 6), 5, False, "read"),
        (known(5, None), 5, False, "read"),
        (known(5), 5, True, "read"),
        (known(None), None, False, ""),
    ],
    ids=[
        "deleted",
        "new",
        "no stored time",
        "same time",
        "changed",
        "time set back",
        "state unknown",
        "forced",
        "never a file",
    ],
)
def test_each_file_takes_one_of_six_paths(
    stored: KnownFile | None, on_disk: int | None, force: bool, path: str
) -> None:
    file = FoundFile("a.md", Path("a.md"), on_disk or 0, 7)
    found = Scan(files={} if on_disk is None else {"a.md": file}, covered=[""])

    decision = decide(found, {} if stored is None else {"a.md": stored}, force)

    assert [name for name in ("read", "skip", "gone") if getattr(decision, name)] == ([path] if path else [])


def test_only_files_below_the_paths_can_be_gone_and_none_in_a_hidden_folder() -> None:
    stored = {key: known(1) for key in ("docs/a.md", "docs/closed/b.md", "docs2/c.md", "d.md")}

    assert decide(Scan(covered=["docs", "d.md"], hidden=["docs/closed"]), stored).gone == ("docs/a.md", "d.md")


def test_a_file_over_the_limit_is_refused(root: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "LARGEST_FILE", 3)
    write("a.md", "text")

    with pytest.raises(SpeckitError, match=r"E013 a\.md: 4 bytes, at most 3 are read"):
        scan([root], root).files["a.md"].read()


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("name", ["0-first", "z-last"])
def test_a_file_is_known_by_the_place_where_it_lies_and_not_by_a_link(root: Path, write: Write, name: str) -> None:
    write("docs/real.md", "text")
    (root / f"{name}.md").symlink_to(root / "docs" / "real.md")
    (root / name).symlink_to(root / "docs")

    found = scan([root], root)

    assert list(found.files) == ["docs/real.md"]
    assert {key for pair in found.links for key in pair} == {"docs/real.md", f"{name}.md"}
    assert list(scan([root / f"{name}.md"], root).files) == [f"{name}.md"], "named by itself, the link is what is meant"
