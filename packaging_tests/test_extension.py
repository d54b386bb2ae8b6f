"""The extension of docs/extending.md, as shown: built, installed beside the wheel, tested and searched through."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from packaging_tests.building import ROOT, built, environment, locked, run
from packaging_tests.extension import files, written

FLAG = "SPECKIT_FRESHNESS_SIGNAL"
PYTEST = ("pytest", "iniconfig", "packaging", "pluggy", "pygments")


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("speckit-freshness"))


@pytest.fixture(scope="session")
def commands(wheel: Path, source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with both wheels and pytest."""
    hashed = ("--require-hashes", "-r")
    return environment(
        tmp_path_factory.mktemp("extended"),
        (*hashed, ROOT / "requirements.lock"),
        (*hashed, locked(tmp_path_factory.mktemp("lock"), *PYTEST)),
        ("--no-deps", wheel, built(source, tmp_path_factory.mktemp("extension"))),
    )


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / ".speckit").mkdir()
    (tmp_path / ".speckit" / "pipeline.yaml").write_text(files()["freshness.yaml"], encoding="utf-8")
    (tmp_path / "gateway.md").write_text("# The gateway retries\n\nThree times, then it gives up.\n")
    (tmp_path / "old.md").write_text("# Rules\n\nThe gateway retries nothing on Fridays.\n")
    old = time.time() - 40 * 86_400
    os.utime(tmp_path / "old.md", (old, old))
    return tmp_path


def test_the_extension_passes_its_own_tests(commands: Path, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    for name, text in files().items():
        if name.startswith("tests/"):  # alone, so that what is installed is tested
            (tmp_path / name).write_text(text, encoding="utf-8")

    ran = run(commands / "python", "-m", "pytest", "-q", "tests", cwd=tmp_path)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " passed" in ran.stdout


@pytest.mark.parametrize("mode", ["trusted", "isolated"])
@pytest.mark.parametrize("flag", ["false", "true"])
def test_a_search_over_mcp_goes_through_the_channel_the_signal_and_the_annotator(
    commands: Path, workspace: Path, mode: str, flag: str
) -> None:
    client = Path(__file__).with_name("extension_client.py")

    talked = run(
        sys.executable, client, commands / "speckit-memory", workspace, cwd=workspace,
        **{"SPECKIT_EXTENSIONS": mode, FLAG: flag},
    )  # fmt: skip

    assert talked.returncode == 0, talked.stdout + talked.stderr
    steps = ["fuse", "freshness"] if flag == "true" else ["fuse"]
    assert json.loads(talked.stdout) == {
        "gateway.md": {"channels": ["bm25", "titled"], "steps": steps, "notes": []},
        "old.md": {"channels": ["bm25"], "steps": steps, "notes": ["stale_days"]},
    }


@pytest.mark.parametrize("mode", ["trusted", "isolated"])
def test_the_flag_is_listed_with_its_origin_and_audited(commands: Path, workspace: Path, mode: str) -> None:
    listed = run(commands / "speckit-memory", "flags", "list", "--json", cwd=workspace, SPECKIT_EXTENSIONS=mode)
    audited = run(commands / "speckit-memory", "flags", "audit", cwd=workspace, SPECKIT_EXTENSIONS=mode)

    [flag] = [flag for flag in json.loads(listed.stdout)["flags"] if flag["name"] == FLAG]
    assert flag["state"] == "off"
    assert flag["origin"].startswith("speckit_freshness/__init__.py:")
    assert audited.returncode == 0, audited.stdout + audited.stderr
