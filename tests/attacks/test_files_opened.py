"""Files that are not what they seem: those without an end, those that wait and those that grow."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from files import write_file
from tally import Tally

from speckit_memory.config.pipelines.sources import pipeline_text
from speckit_memory.config.workspace.options import SourcePattern, SourcePatterns
from speckit_memory.config.workspace.workspace_file import read_workspace_config
from speckit_memory.errors import SpeckitError, Where
from speckit_memory.evaluation.datasets import lines
from speckit_memory.evaluation.datasets.dataset import read
from speckit_memory.memory.scanning import ignore_files, inside, scanner
from speckit_memory.memory.scanning.scanner import scan
from tests.attacks.swaps import in_time, outside

Make = Callable[[Path], object]


def _huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 20_000_000_000)


TRAPS: dict[str, Make] = {
    "pipe": os.mkfifo,
    "socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "folder": lambda path: path.mkdir(),
    "loop": lambda path: path.symlink_to(path.name),
    "huge": _huge,
    "bytes": lambda path: path.write_bytes(b"\xff\xfe\x00\xd8"),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    write_file(folder / "docs" / "good.md", "# Good\n\nquokka\n")
    return folder


@pytest.mark.parametrize("trap", TRAPS)
def test_a_pipeline_that_is_no_file_of_text_is_refused_at_once(trap: str, root: Path, tally: Tally) -> None:
    TRAPS[trap](root / "trap.yaml")

    with pytest.raises(SpeckitError, match=r"E1[12][014]|E014"):
        in_time(lambda: pipeline_text(str(root / "trap.yaml")))
    tally.tried()


@pytest.mark.parametrize("trap", TRAPS)
def test_a_configuration_that_is_no_file_of_text_is_refused_at_once(trap: str, root: Path, tally: Tally) -> None:
    (root / ".speckit").mkdir()
    TRAPS[trap](root / ".speckit" / "config.yaml")

    [problem] = in_time(lambda: read_workspace_config(root))[1]

    assert problem.code == "E110"
    tally.tried()


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "edges.tsv"])
@pytest.mark.parametrize("trap", TRAPS)
def test_a_dataset_with_a_file_that_is_none_is_refused_at_once(
    trap: str, name: str, root: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 1000)
    (root / "qrels").mkdir()
    (root / "corpus.jsonl").write_text('{"_id": "a", "text": "quokka"}\n', encoding="utf-8")
    (root / "queries.jsonl").write_text('{"_id": "q", "text": "quokka"}\n', encoding="utf-8")
    (root / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n", encoding="utf-8")
    (root / name).unlink(missing_ok=True)
    TRAPS[trap](root / name)

    with pytest.raises(SpeckitError, match="E123"):
        in_time(lambda: read(root, judged=name != "edges.tsv"))
    tally.tried()


@pytest.mark.parametrize("where", [".gitignore", "docs/.gitignore", ".git", ".git/info/exclude", "docs/sub/.git"])
@pytest.mark.parametrize("trap", TRAPS)
def test_ignore_files_of_any_kind_stop_no_scan(
    trap: str, where: str, root: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    monkeypatch.setattr(ignore_files, "LARGEST", 1000)
    (root / where).parent.mkdir(parents=True, exist_ok=True)
    TRAPS[trap](root / where)

    found = in_time(lambda: scan([root], root))

    assert list(found.files) == ["docs/good.md"]
    assert {problem.code for problem in found.remarks} <= {"E011", "E013", "E014", "E114"}
    tally.tried()


def test_an_ignore_file_that_leads_out_of_the_workspace_is_not_read(root: Path, tally: Tally) -> None:
    secret = write_file(outside(root) / "patterns", "*\n")
    (root / "docs" / ".gitignore").symlink_to(secret)

    found = scan([root], root)

    assert list(found.files) == ["docs/good.md"]
    assert ["leads out of the workspace" in problem.message for problem in found.remarks] == [True]
    tally.tried()


@pytest.mark.parametrize("gitdir", ["x" * 5000, "\0", "/dev/zero", "../" * 3000, "\udcff", ""])
def test_a_git_file_may_name_anything(gitdir: str, root: Path, tally: Tally) -> None:
    (root / ".git").write_bytes(b"gitdir: " + os.fsencode(gitdir))

    found = in_time(lambda: scan([root], root))

    assert list(found.files) == ["docs/good.md"]
    tally.tried()


@pytest.mark.parametrize("named", ["~nobody_here/x", "/dev/zero", "x" * 5000, "loop"])
def test_a_personal_list_of_patterns_may_be_anything(
    named: str, root: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    monkeypatch.setenv("HOME", str(root.parent))
    (root.parent / "loop").symlink_to("loop")
    (root.parent / ".gitconfig").write_text(f"[core]\n\texcludesFile = {named}\n", encoding="utf-8")
    (root / ".git").mkdir()

    found = in_time(lambda: scan([root], root))

    assert list(found.files) == ["docs/good.md"]
    tally.tried()


def test_a_file_that_grows_while_it_is_read_is_left_at_the_limit(
    root: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    path, real = root / "docs" / "good.md", os.read

    def grown(descriptor: int, size: int) -> bytes:
        with path.open("ab") as file:
            file.write(b"more\n" * 20_000)
        return real(descriptor, size)

    monkeypatch.setattr(scanner, "LARGEST_FILE", 1_000_000)
    monkeypatch.setattr(os, "read", grown)

    with pytest.raises(SpeckitError, match=r"E013 docs/good\.md: it grew"):
        in_time(scan([root], root).files["docs/good.md"].read)
    tally.survived()


def test_a_file_that_shrinks_while_it_is_read_ends_where_it_ends(
    root: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    path, real = root / "docs" / "good.md", os.read

    def cut(descriptor: int, size: int) -> bytes:
        os.truncate(path, 6)
        return real(descriptor, size)

    monkeypatch.setattr(os, "read", cut)

    assert scan([root], root).files["docs/good.md"].read()[0] == "# Good"
    tally.survived()


def test_a_system_that_opens_no_path_from_a_folder_looks_before_it_opens(
    root: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    monkeypatch.setattr(inside, "_STEPWISE", False)
    file = scan([root], root).files["docs/good.md"]
    assert file.read()[0].startswith("# Good")

    file.path.unlink()
    file.path.symlink_to(outside(root) / "a.md")

    with pytest.raises(SpeckitError, match=r"E014 docs/good\.md: the link leads out of the workspace"):
        file.read()
    tally.survived()


def test_folders_that_loop_and_paths_without_end_are_walked_to_an_end(root: Path, tally: Tally) -> None:
    deep = root / "docs"
    for number in range(120):
        deep = deep / ("d" * 30)
        deep.mkdir()
        (deep / "loop").symlink_to("../" * (number % 7 + 1))
    longest = os.open(deep, os.O_RDONLY)
    try:
        for _ in range(40):  # beyond what a path may be long
            os.mkdir("e" * 30, dir_fd=longest)
            deeper = os.open("e" * 30, os.O_RDONLY, dir_fd=longest)
            os.close(longest)
            longest = deeper
    finally:
        os.close(longest)

    found = in_time(lambda: scan([root], root, SourcePatterns((SourcePattern("**/*.md", Where("c", 1, 1)),))))

    assert list(found.files) == ["docs/good.md"]
    assert any("name too long" in problem.message for problem in found.problems)
    tally.tried(160)


@pytest.mark.usefixtures("exhaustive")
def test_a_hundred_thousand_files_in_one_folder_are_found(root: Path, tally: Tally) -> None:
    many = root / "many"
    many.mkdir()
    source = many / "0.md"
    source.touch()
    descriptor = os.open(many, os.O_RDONLY)
    for number in range(1, 100_000):
        os.close(os.open(f"{number}.md", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)

    assert len(in_time(lambda: scan([root], root)).files) == 100_001
    tally.tried(100_000)
