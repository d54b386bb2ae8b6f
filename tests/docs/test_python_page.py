"""`docs/python.md` is executed, block by block, and what it shows is what it prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

import speckit_memory
from speckit_memory.config.settings import workspace_root

PAGE = workspace_root(Path(__file__).parent) / "docs" / "python.md"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_every_block_runs_in_order_and_prints_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("SPECKIT_DB", "SPECKIT_PIPELINE", "SPECKIT_ROOT"):
        monkeypatch.delenv(name, raising=False)
    names: dict[str, Any] = {"__name__": "page"}
    said, compared = "", 0

    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "python":
            assert said == "", "what the block before printed is not shown"
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(text, str(PAGE), "exec"), names)
            said = printed.getvalue()
        else:
            assert said == text
            said, compared = "", compared + 1
    assert said == ""
    assert compared == 6


def test_the_page_tells_of_every_class_of_errors() -> None:
    rows = re.findall(r"^\| `(\w+Error)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    public = [name for name in speckit_memory.__all__ if name.endswith("Error")]
    assert sorted([*rows, "SpeckitError"]) == public
