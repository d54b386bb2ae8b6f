"""Pages with Python are executed, block by block, and what they show is what is printed."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

import speckit_memory
from speckit_memory.config.workspace.settings import workspace_root

PAGE = workspace_root(Path(__file__).parent) / "docs" / "python.md"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("page", "shown"), [("python.md", 9), ("shadows.md", 1)])
@pytest.mark.usefixtures("processes")
def test_every_block_runs_in_order_and_prints_what_is_shown(
    page: str, shown: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("SPECKIT_DB", "SPECKIT_PIPELINE", "SPECKIT_ROOT"):
        monkeypatch.delenv(name, raising=False)
    names: dict[str, Any] = {"__name__": "page"}
    said, compared = "", 0

    for kind, text in BLOCK.findall(PAGE.with_name(page).read_text(encoding="utf-8")):
        if kind == "python":
            assert said == "", "what the block before printed is not shown"
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(text, page, "exec"), names)
            said = printed.getvalue()
        else:
            assert said == text
            said, compared = "", compared + 1
    assert said == ""
    assert compared == shown


def test_the_page_tells_of_every_class_of_errors() -> None:
    rows = re.findall(r"^\| `(\w+Error)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    public = [name for name in speckit_memory.__all__ if name.endswith("Error")]
    assert sorted([*rows, "SpeckitError"]) == public
