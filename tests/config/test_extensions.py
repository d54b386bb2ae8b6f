"""Who decides where extensions run: the environment before the workspace's file before what is shipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.config.workspace.extensions import ExtensionSettings, extensions_in_force
from speckit_memory.errors import SpeckitError


def said(root: Path, text: str) -> Path:
    (root / ".speckit").mkdir(parents=True, exist_ok=True)
    (root / ".speckit" / "config.yaml").write_text(text, encoding="utf-8")
    return root


def test_the_environment_goes_before_the_file_and_the_file_before_the_default(tmp_path: Path) -> None:
    assert extensions_in_force({}, tmp_path) == ExtensionSettings("isolated", 2048)
    said(tmp_path, "extensions: isolated\nextensions_memory_mb: 4096\n")
    assert extensions_in_force({}, tmp_path) == ExtensionSettings("isolated", 4096)
    environ = {"SPECKIT_ROOT": str(tmp_path), "SPECKIT_EXTENSIONS": " None ", "SPECKIT_EXTENSIONS_MEMORY_MB": "0"}
    assert extensions_in_force(environ, tmp_path) == ExtensionSettings("none", 0)
    empty = {"SPECKIT_EXTENSIONS": "", "SPECKIT_EXTENSIONS_MEMORY_MB": " "}
    assert extensions_in_force(empty, tmp_path) == ExtensionSettings("isolated", 4096)
    said(tmp_path, "extensions: null\nextensions_memory_mb: 0\n")
    assert extensions_in_force({}, tmp_path) == ExtensionSettings("isolated", 0)


def test_a_store_elsewhere_is_no_way_around_the_workspace(tmp_path: Path) -> None:
    mine, other = said(tmp_path / "mine", "extensions: isolated\n"), said(tmp_path / "other", "extensions: trusted\n")
    strict = said(tmp_path / "strict", "extensions: none\n")
    environ = {"SPECKIT_ROOT": str(mine)}
    assert extensions_in_force(environ).mode == "isolated"
    assert extensions_in_force(environ, other).mode == "isolated"
    assert extensions_in_force(environ, strict).mode == "none"


@pytest.mark.parametrize(
    ("variable", "written", "message"),
    [
        ("SPECKIT_EXTENSIONS", "isolatd", "SPECKIT_EXTENSIONS is 'isolatd'; did you mean 'isolated'?"),
        ("SPECKIT_EXTENSIONS", "1", "SPECKIT_EXTENSIONS is '1'; accepted: isolated, none, trusted"),
        *(
            (
                "SPECKIT_EXTENSIONS_MEMORY_MB",
                written,
                f"SPECKIT_EXTENSIONS_MEMORY_MB is '{written}'; "
                "accepted: a whole number of megabytes from 256 up, or 0 for no limit",
            )
            for written in ("64", "-1", "2 GB", "1e3", "²", "9999999999999")
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(tmp_path: Path, variable: str, written: str, message: str) -> None:
    with pytest.raises(SpeckitError) as raised:
        extensions_in_force({variable: written}, tmp_path)
    [problem] = raised.value.problems
    assert (problem.code, problem.message) == ("E030", message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extensions: apart\n", "'extensions' must be one of trusted, isolated, none; found 'apart'"),
        ("extensions: [isolated]\n", "'extensions' must be one of trusted, isolated, none; found a list"),
        ("extensions: false\n", "'extensions' must be one of trusted, isolated, none; found False"),
        (
            "extensions_memory_mb: 255\n",
            "'extensions_memory_mb' must be a whole number of megabytes from 256 up, or 0 for no limit; found 255",
        ),
        (
            "extensions_memory_mb: true\n",
            "'extensions_memory_mb' must be a whole number of megabytes from 256 up, or 0 for no limit; found True",
        ),
    ],
)
def test_a_mistake_in_the_file_is_told_at_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SpeckitError) as raised:
        extensions_in_force({}, said(tmp_path, text))
    [problem] = raised.value.problems
    assert (problem.code, problem.message) == ("E114", message)
    assert problem.where is not None
    assert problem.where.line == 1
