from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from server.shadowing import report, shadowed
from tests.server.doors import COMMAND, environment


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    expected = f"nothing was found for the package 'no_such_package' of '{tmp_path / 'no_such_package'}'"
    assert shadowed(["no_such_package"], tmp_path) == [expected]


def test_several_messages_are_several_errors() -> None:
    document = json.loads(report(["one", "two"], as_json=True))
    assert document["error"] == document["errors"][0]
    assert [error["message"] for error in document["errors"]] == ["one", "two"]


@pytest.mark.requirement("T27.checked")
def test_a_decoy_package_is_refused_with_its_path(tmp_path: Path) -> None:
    for name in ("config", "stages"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    finished = subprocess.run(
        [COMMAND, "flags", "list", "--json"],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env=environment(tmp_path, PYTHONPATH=str(tmp_path)),
    )
    errors = json.loads(finished.stdout)["errors"]
    assert finished.returncode == 2
    assert [error["code"] for error in errors] == ["E122", "E122"]
    assert str(tmp_path / "config" / "__init__.py") in errors[0]["message"]


def test_decoys_in_the_working_directory_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "__init__.py").write_text("raise SystemExit(99)")
    finished = subprocess.run([COMMAND, "flags", "list"], check=False, capture_output=True, cwd=tmp_path)
    assert finished.returncode == 0
