"""The wheel as a user gets it: what it holds, and that it runs where nothing of the repository is in reach."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path

import pytest

from packaging_tests.building import ROOT, environment, run

ROOMS = ("config", "pipeline", "channels", "signals", "stages", "memory", "engine", "evaluation", "server")


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lock = ("--require-hashes", "-r", ROOT / "requirements.lock")
    return environment(tmp_path_factory.mktemp("clean"), lock, ("--no-deps", wheel)) / "speckit-memory"


@pytest.fixture
def decoys(tmp_path: Path) -> Path:
    """A working directory, and first on the path, that holds packages named like our rooms."""
    for name in ROOMS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the decoy was imported')\n")
    (tmp_path / "note.md").write_text("# A note\n\nThe gateway retries three times.\n")
    return tmp_path


def test_the_wheel_holds_our_rooms_under_one_name_their_data_and_nothing_else(wheel: Path) -> None:
    listed = run("git", "ls-files", *ROOMS, cwd=ROOT).stdout.splitlines()
    documents = run("git", "ls-files", "docs", cwd=ROOT).stdout.splitlines()
    front = [
        name.removeprefix("src/speckit_memory/") for name in run("git", "ls-files", "src", cwd=ROOT).stdout.splitlines()
    ]
    corpus = "evaluation/bundled/docs"
    within = {*({*front} - {*ROOMS}), *({*listed} - {corpus}), *(name.replace("docs", corpus, 1) for name in documents)}

    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert held == {f"speckit_memory/{name}" for name in within}


def test_the_installed_wheel_indexes_and_searches_beside_decoy_packages(installed: Path, decoys: Path) -> None:
    indexed = run(installed, "index", "note.md", "--json", cwd=decoys, PYTHONPATH=".")
    found = run(installed, "search", "how often does the gateway retry?", "--json", cwd=decoys, PYTHONPATH=".")
    doctor = run(installed, "doctor", cwd=decoys, PYTHONPATH=".")

    assert indexed.returncode == 0, indexed.stderr
    assert doctor.returncode == 0, doctor.stdout
    assert [row["key"] for row in json.loads(found.stdout)["results"]] == ["note.md"]


def test_the_demonstration_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    shown = run(installed, "demo", "--html", "page.html", cwd=tmp_path)

    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert (tmp_path / "page.html").read_text(encoding="utf-8").count("<svg ") == 4  # two plots, wide and narrow


def test_a_page_of_restructuredtext_is_found_by_the_title_of_its_section(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "guide.rst").write_text(
        "=====\nGuide\n=====\n\n.. _retries:\n\nRetries\n-------\n\nThree times::\n\n   x\n"
    )
    indexed = run(installed, "index", "guide.rst", "--json", cwd=tmp_path)
    found = run(installed, "search", "retries", "--json", cwd=tmp_path)

    assert indexed.returncode == 0, indexed.stderr
    assert [row["title"] for row in json.loads(found.stdout)["results"]] == ["Guide"]


@pytest.mark.requirement("E3", "E3.anywhere")
def test_the_ground_truth_that_ships_is_measured_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    measured = run(installed, "eval", "run", "--dataset", "bundled", "--pipeline", "bm25", "--json", cwd=tmp_path)

    assert measured.returncode == 0, measured.stdout + measured.stderr
    report = json.loads(measured.stdout)
    assert (report["dataset"], report["queries"] >= 96, report["excluded"]["no_relevant"] >= 14) == (
        "bundled",
        True,
        True,
    )


def test_the_sdk_client_saves_searches_and_lists_over_stdio(installed: Path, tmp_path: Path) -> None:
    (tmp_path / ".speckit").mkdir()
    (tmp_path / "gateway.md").write_text("# Gateway\n\nThe gateway retries three times before it gives up.\n")
    client = Path(__file__).with_name("client.py")

    talked = run(sys.executable, client, installed, tmp_path, cwd=tmp_path)

    assert talked.returncode == 0, talked.stdout + talked.stderr
    assert json.loads(talked.stdout) == {"saved": "created", "found": ["gateway.md"], "listed": ["gateway.md"]}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project as many are: under version control, with a specification folder and a package named like a room."""
    files = {
        ".gitignore": "__pycache__/\ndrafts/\n",
        ".specify/memory/constitution.md": "# Rules\n\nEvery change has a test. Secrets stay out of the repository.\n",
        "specs/001-login/spec.md": "# Login\n\nUsers sign in with a code that is sent by mail.\n",
        "config/__init__.py": "raise SystemExit('the decoy was imported')\n",
        "drafts/idea.md": "# Idea\n\nUsers might sign in with passkeys.\n",
    }
    for name, text in files.items():
        file = tmp_path / "project" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for arguments in (
        ("init", "-q"),
        ("add", "."),
        ("-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "begin"),
    ):
        done = run("git", *arguments, cwd=tmp_path / "project")
        assert done.returncode == 0, done.stderr
    return tmp_path / "project"


def test_the_first_day_of_a_new_user(installed: Path, project: Path) -> None:
    home = project.with_name("home")
    home.mkdir()

    def typed(*arguments: str) -> str:
        done = run(installed, *arguments, cwd=project, HOME=str(home), PYTHONPATH=".")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert typed("init").splitlines()[-1] == "Next: speckit-memory index ."
    clients = ("claude-code", "claude-desktop", "cursor", "vscode", "codex", "windsurf", "zed")
    written = typed("init", "--write", *(part for client in clients for part in ("--client", client)))
    # each has its own file in its own form: nothing is left to be pasted
    assert written.count(": created") == len(clients)
    assert "{" not in written
    assert "2 created" in typed("index", ".")  # neither the generated section of AGENTS.md nor the ignored draft

    program = Path(__file__).with_name("new_user.py")
    path = os.pathsep.join((str(installed.parent), os.environ["PATH"]))  # the file names the script and no folder
    talked = run(sys.executable, program, project / ".mcp.json", project, cwd=home, HOME=str(home), PATH=path)

    assert talked.returncode == 0, talked.stdout + talked.stderr
    told = json.loads(talked.stdout)
    decision, pool = "memories/accounts-in-postgres.md", "memories/pool-of-connections.md"
    assert told["saved"] == [decision, pool]
    assert told["found"] == [decision, "specs/001-login/spec.md", ".specify/memory/constitution.md"]
    assert "already sent" in told["again"][-1]
    assert decision in json.dumps(told["lineage"])
    assert told["there"] == [False, True]
    assert told["resumed"]["task"]["openQuestions"] == ["what if none is free?"]
    assert decision in {memory["key"] for memory in told["resumed"]["attended"]}
    status = run("git", "status", "--porcelain", "--untracked-files=all", cwd=project).stdout.split()[1::2]
    assert status == [
        ".codex/config.toml", ".cursor/mcp.json", ".mcp.json", ".speckit/.gitignore", ".speckit/config.yaml",
        ".speckit/pipeline.schema.json", ".speckit/pipeline.yaml", ".vscode/mcp.json", ".zed/settings.json",
        "AGENTS.md", decision, pool,
    ]  # fmt: skip
