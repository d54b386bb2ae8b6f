"""Who decides which tools are offered, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.config.options.tool_profile import ToolProfile
from speckit_memory.config.workspace.settings import settings
from speckit_memory.config.workspace.tool_profile_in_force import tool_profile_in_force
from speckit_memory.config.workspace.workspace_file import read_workspace_config
from speckit_memory.errors import SpeckitError


def said(root: Path, text: str) -> Path:
    (root / ".speckit").mkdir(exist_ok=True)
    (root / ".speckit" / "config.yaml").write_text(text, encoding="utf-8")
    return root


def in_force(root: Path, called: ToolProfile | None = None, **environ: str) -> str:
    return tool_profile_in_force(settings(root=root, environ=environ), called)


def test_the_call_goes_before_the_environment_that_before_the_file_and_the_file_before_the_default(
    tmp_path: Path,
) -> None:
    assert in_force(tmp_path) == "full"
    said(tmp_path, "profile:\n")
    assert in_force(tmp_path) == "full"
    said(tmp_path, "profile: core\n")
    assert in_force(tmp_path) == "core"
    assert in_force(tmp_path, SPECKIT_PROFILE="") == "core"
    assert in_force(tmp_path, SPECKIT_PROFILE=" FULL ") == "full"
    assert in_force(tmp_path, "core", SPECKIT_PROFILE="full") == "core"


def test_what_means_nothing_is_refused_with_what_does(tmp_path: Path) -> None:
    with pytest.raises(SpeckitError) as raised:
        in_force(tmp_path, SPECKIT_PROFILE="cor")
    assert str(raised.value) == "E030 SPECKIT_PROFILE is 'cor'; did you mean 'core'?"
    for written, found in (("small", "'small'"), ("[core]", "a list"), ("1", "1")):
        config, [problem] = read_workspace_config(said(tmp_path, f"profile: {written}\n"))
        assert problem.message == f'\'profile\' must be "core" or "full"; found {found}'
        assert (config.profile, str(problem.where).rpartition("yaml")[2]) == ("full", ":1:10")
