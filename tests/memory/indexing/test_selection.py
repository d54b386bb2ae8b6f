"""What a scan takes of a workspace, and why it leaves out the rest."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from speckit_memory.config.workspace.options import SourcePattern, SourcePatterns
from speckit_memory.errors import Where
from speckit_memory.memory.scanning.scanner import Scan, scan
from speckit_memory.memory.scanning.selection import refusal

Write = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without any setting of Git."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return folder


def patterns(include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()) -> SourcePatterns:
    def placed(texts: tuple[str, ...]) -> tuple[SourcePattern, ...]:
        return tuple(SourcePattern(text, Where("config.yaml", 3, at)) for at, text in enumerate(texts, start=5))

    return SourcePatterns(placed(include), placed(exclude))


def keys(found: Scan) -> list[str]:
    return sorted(found.files)


def test_ignore_files_of_every_folder_are_obeyed_and_named(root: Path, write: Write) -> None:
    for key in ("a.md", "docs/a.md", "docs/secret.md", "docs/keep.md", "docs/deep/x.md", "private/p.md", "info.md"):
        write(key, "text")
    write(".gitignore", "\ufeffprivate/\r\n# remark\r\nsecret.md\r\n")
    write("docs/.gitignore", "*.md\n!keep.md\n!deep/\n")
    write(".git/info/exclude", "info.md\n")

    found = scan([root], root)

    assert keys(found) == ["a.md", "docs/keep.md"]
    assert found.ignored == {
        "docs/a.md": "docs/.gitignore:1: *.md",
        "docs/deep/x.md": "docs/.gitignore:1: *.md",
        "docs/secret.md": "docs/.gitignore:1: *.md",
        "info.md": ".git/info/exclude:1: info.md",
        "private/": ".gitignore:1: private/",
    }
    assert (found.problems, found.remarks) == ([], [])


def test_ignore_files_hold_without_a_repository_and_from_above_the_workspace_within_one(
    root: Path, write: Write
) -> None:
    write("part/a.md", "text")
    write("part/secret.md", "text")
    write(".gitignore", "secret.md\n")
    part = root / "part"

    assert keys(scan([root], root)) == ["part/a.md"]
    assert keys(scan([part], part)) == ["a.md", "secret.md"], "nothing says that the two belong together"
    (root / ".git").mkdir()
    assert keys(scan([part], part)) == ["a.md"]


def test_a_repository_inside_begins_anew_and_a_worktree_is_not_entered(root: Path, write: Write) -> None:
    write(".gitignore", "*.txt\n")
    write("submodule/a.txt", "text")
    write("submodule/b.md", "text")
    write("submodule/.git", "gitdir: ../.git/modules/submodule\n")
    write(".git/modules/submodule/info/exclude", "b.md\n")
    write(".git/worktrees/other/commondir", "../..\n")
    write("other/.git", f"gitdir: {root}/.git/worktrees/other\n")
    write("other/a.md", "text")

    found = scan([root], root)

    assert keys(found) == ["submodule/a.txt"]
    assert found.ignored["other/"] == "another worktree of a repository"


def test_in_a_worktree_the_exclusions_of_its_repository_hold(root: Path, write: Write) -> None:
    for key in ("here/a.md", "here/b.md"):
        write(key, "text")
    write("main/.git/info/exclude", "b.md\n")
    write("main/.git/worktrees/here/commondir", "../..\n")
    write("here/.git", f"gitdir: {root}/main/.git/worktrees/here\n")

    assert keys(scan([root / "here"], root / "here")) == ["a.md"]


def test_the_users_own_list_is_obeyed_in_repositories(root: Path, write: Write, home: Path) -> None:
    for key in ("a.md", "todo.md", "scratch.md", ".git/HEAD"):
        write(key, "text")
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".config" / "git" / "ignore").write_text("todo.md\n")
    assert keys(scan([root], root)) == ["a.md", "scratch.md"]

    (home / ".gitconfig").write_text("[core]\n\teditor = vi\n\texcludesFile = ~/mine\n")
    (home / "mine").write_text("scratch.md\n")
    found = scan([root], root)
    assert keys(found) == ["a.md", "todo.md"]
    assert found.ignored == {"scratch.md": f"{home}/mine:1: scratch.md"}


@pytest.mark.parametrize(
    "data", ["\udcff".encode(errors="surrogateescape") + b"\nsecret.md\n", "secret.md\n".encode("utf-16"), b"secret.md"]
)
def test_an_ignore_file_in_another_encoding_is_obeyed(root: Path, write: Write, data: bytes) -> None:
    write("a.md", "text")
    write("secret.md", "text")
    (root / ".gitignore").write_bytes(data)

    assert keys(scan([root], root)) == ["a.md"]


def test_a_line_that_is_no_pattern_is_reported_and_the_others_hold(root: Path, write: Write) -> None:
    write("secret.md", "text")
    write(".gitignore", "ok\n[z-a]\nsecret.md\n")

    found = scan([root], root)

    assert keys(found) == []
    assert [str(problem) for problem in found.remarks] == [f"{root}/.gitignore:2:1: E114 '[z-a]' is not a pattern"]
    assert found.ignored == {"secret.md": ".gitignore:3: secret.md"}


def test_a_folder_of_that_name_is_no_ignore_file(root: Path, write: Write) -> None:
    write("a.md", "text")
    (root / ".gitignore").mkdir()

    found = scan([root], root)

    assert (keys(found), found.remarks) == (["a.md"], [])


def test_what_is_named_is_taken_and_below_it_the_rules_hold(root: Path, write: Write) -> None:
    for key in ("docs/a.md", "docs/secret.md", ".notes/n.md", ".notes/.deep/m.md", "x/secret.md"):
        write(key, "text")
    write(".gitignore", "docs/\nsecret.md\n")
    named = [root / "docs", root / ".notes", root / "x" / "secret.md"]

    found = scan(named, root)

    assert keys(found) == [".notes/n.md", "docs/a.md", "x/secret.md"]
    assert found.overruled == {
        "docs": ".gitignore:1: docs/",
        ".notes": "hidden",
        "x/secret.md": ".gitignore:2: secret.md",
    }

    later = scan([root], root, remembered=list(found.overruled))
    assert keys(later) == keys(found)
    assert later.ignored == {"docs/secret.md": ".gitignore:2: secret.md", ".notes/.deep/": "hidden"}


def test_what_was_named_and_is_gone_is_no_problem_of_a_later_run(root: Path, write: Write) -> None:
    write("a.md", "text")

    found = scan([root], root, remembered=[".gone", "gone.md"])

    assert (keys(found), found.problems, found.missing) == (["a.md"], [], [])


def test_a_folder_that_everything_in_it_is_ignored_by_can_be_a_workspace(root: Path, write: Write) -> None:
    """Environments have a `.gitignore` with `*`; an installed package inside one has documents too."""
    write(".git/HEAD", "")
    write(".gitignore", ".venv/\n")
    write(".venv/.gitignore", "*\n")
    write(".venv/lib/demo/a.md", "text")
    demo = root / ".venv" / "lib" / "demo"

    assert keys(scan([demo], demo)) == ["a.md"]


def test_hidden_folders_of_agents_tools_are_entered_and_those_of_programs_never(root: Path, write: Write) -> None:
    taken = [".claude/c.md", ".cursor/rules/r.mdc", ".github/g.md", ".specify/specs/s.md", "part/.claude/c.md"]
    for key in (*taken, ".notes/n.md", ".venv/v.md", ".speckit/m.md", ".claude/.cache/c.md", ".claude/.tmp/c.md"):
        write(key, "text")

    found = scan([root], root)
    assert keys(found) == taken
    assert found.ignored == {".notes/": "hidden", ".claude/.tmp/": "hidden"}

    everything = scan([root], root, patterns(include=(".*/", ".venv/", "**/.*")))
    assert keys(everything) == sorted([*taken, ".notes/n.md", ".claude/.tmp/c.md"])


def test_nothing_in_the_folders_of_git_and_of_the_store_can_be_named(root: Path, write: Write) -> None:
    write(".git/a.md", "text")

    found = scan([root / ".git" / "a.md", root / ".speckit"], root)

    assert found.files == {}
    assert [problem.code for problem in found.problems] == ["E014", "E014"]


@pytest.mark.parametrize(
    ("include", "taken"),
    [
        ((), ["a.md", "docs/b.md", "docs/deep/c.md"]),
        (("docs/",), ["docs/b.md", "docs/deep/c.md"]),
        (("docs/*.md",), ["docs/b.md"]),
        (("*.md",), ["a.md", "docs/b.md", "docs/deep/c.md"]),
        ((".notes/",), [".notes/n.md", "a.md", "docs/b.md", "docs/deep/c.md"]),
        ((".notes/", "docs/deep"), [".notes/n.md", "docs/deep/c.md"]),
        ((".notes/adr/*.md",), [".notes/adr/d.md", "a.md", "docs/b.md", "docs/deep/c.md"]),
        (("docs/.hidden.md",), ["a.md", "docs/.hidden.md", "docs/b.md", "docs/deep/c.md"]),
    ],
)
def test_include_opens_hidden_places_and_otherwise_says_what_is_taken(
    root: Path, write: Write, include: tuple[str, ...], taken: list[str]
) -> None:
    for key in ("a.md", "docs/b.md", "docs/deep/c.md", "docs/.hidden.md", ".notes/n.md", ".notes/.x/n.md"):
        write(key, "text")
    write(".notes/adr/d.md", "text")
    if include and include[0] == ".notes/":
        taken = sorted([*taken, ".notes/adr/d.md"])

    assert keys(scan([root], root, patterns(include))) == taken


def test_a_folder_that_include_does_not_speak_of_is_taken_when_it_is_named(root: Path, write: Write) -> None:
    for key in ("docs/a.md", "docs/b.txt", "notes/n.md"):
        write(key, "text")
    only = patterns(include=("docs/*.md",))

    assert keys(scan([root], root, only)) == ["docs/a.md"]
    assert keys(scan([root / "notes", root / "docs"], root, only)) == ["docs/a.md", "notes/n.md"]


def test_exclude_goes_before_the_ignore_files_and_can_take_back_what_they_leave_out(root: Path, write: Write) -> None:
    for key in ("a.md", "drafts/d.md", "private/p.md", "private/decisions/q.md"):
        write(key, "text")
    write(".gitignore", "private/\n")

    found = scan([root], root, patterns(exclude=("drafts/", "!private/", "private/*", "!private/decisions/")))

    assert keys(found) == ["a.md", "private/decisions/q.md"]
    assert found.ignored == {
        "drafts/": ".speckit/config.yaml:3:5: drafts/",
        "private/p.md": ".speckit/config.yaml:3:7: private/*",
    }


def test_a_link_that_leads_nowhere_or_in_a_circle_is_remarked_on(root: Path, write: Write) -> None:
    write("a.md", "text")
    (root / "nowhere.md").symlink_to("gone.md")
    (root / "circle.md").symlink_to("circle.md")

    found = scan([root], root)

    assert (keys(found), found.problems) == (["a.md"], [])
    assert [str(problem) for problem in found.remarks] == [
        "E014 circle.md: too many levels of symbolic links",
        "E010 nowhere.md: the link leads nowhere",
    ]


@pytest.mark.usefixtures("modes_respected")
def test_an_ignore_file_that_may_not_be_read_is_reported(root: Path, write: Write) -> None:
    write("a.md", "text")
    write(".gitignore", "a.md\n").chmod(0)

    found = scan([root], root)

    assert [problem.code for problem in found.remarks] == ["E011"]


@pytest.mark.parametrize(
    ("path", "is_folder", "include", "reason"),
    [
        ("docs/a.md", False, (), ""),
        (".claude/commands", True, (), ""),
        (".env", False, (), "hidden"),
        (".claude/.env.md", False, (), "hidden"),
        (".notes/a.md", False, (), "hidden"),
        (".notes/a.md", False, (".notes/",), ""),
        (".notes/.x/a.md", False, (".notes/",), "hidden"),
        (".notes/a.md", False, ("**",), "hidden"),
        ("web/node_modules/it", True, (), "in 'node_modules'"),
        (".git/info", True, (".git/",), "in '.git'"),
        (".speckit/config.md", False, (".*/",), "in '.speckit'"),
    ],
)
def test_what_an_agent_may_name(path: str, is_folder: bool, include: tuple[str, ...], reason: str) -> None:
    assert refusal(tuple(path.split("/")), is_folder, patterns(include)) == reason


@pytest.mark.skipif(shutil.which("git") is None, reason="needs Git")
@pytest.mark.usefixtures("processes")
def test_git_ignores_the_same_files(root: Path, write: Write) -> None:
    for folder in ("", "docs/", "docs/deep/", "a/b/", "private/", "build-notes/"):
        for name in ("x.md", "y.md", "keep.md", "[odd].md", "# hash.md"):
            write(folder + name, "text")
    write(".gitignore", "/docs/*\n!/docs/deep/\nprivate/**\n!private/keep.md\n\\#*\n*/y.md\nbuild*/\n")
    write("docs/deep/.gitignore", "*\n!*/\n!keep.md\n")
    write("a/.gitignore", "**/x.md\n\\[odd\\].md\n!y.md\n")
    git = ["git", "-C", str(root), "-c", "core.quotePath=off"]
    subprocess.run(["git", "init", "-q", root], check=True)
    listed = subprocess.run(
        [*git, "ls-files", "--others", "--exclude-standard"], check=True, capture_output=True, text=True
    )

    wanted = [line for line in listed.stdout.splitlines() if line.endswith(".md")]

    assert len(wanted) > 5
    assert keys(scan([root], root)) == sorted(wanted)


@pytest.mark.requirement("I8.ignored")
def test_a_speckitignore_goes_before_the_gitignore_beside_it_and_holds_in_repositories_below(
    root: Path, write: Write
) -> None:
    for key in ("a.md", "logs/b.md", "kept/c.md", "sub/drafts/d.md", "sub/e.md", "sub/f.md"):
        write(key, "text")
    write(".gitignore", "kept/\n")
    write(".speckitignore", "# ours\nlogs/\n!kept/\ndrafts/\n")
    write("sub/.git/info/exclude", "f.md\n")

    found = scan([root], root)

    assert keys(found) == ["a.md", "kept/c.md", "sub/e.md"]
    assert found.ignored == {
        "logs/": ".speckitignore:2: logs/",
        "sub/drafts/": ".speckitignore:4: drafts/",
        "sub/f.md": "sub/.git/info/exclude:1: f.md",
    }
