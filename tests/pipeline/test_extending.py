from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.config.pipelines.sources import presets
from speckit_memory.engine import components
from speckit_memory.engine.pipelines import pipelines
from speckit_memory.pipeline.configuration.builder import examine

BASE = """\
pipeline: base
candidates:
  understand: []
  channels: [bm25]
  recover: []
fusion: [{use: rrf, id: fuse}]
rerank: []
annotate: []
extends: none
"""


@pytest.mark.requirement("P2")
def test_a_file_that_is_extended_lies_where_the_file_that_says_so_sees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "shared")
    (tmp_path / "base.yaml").write_text(BASE, encoding="utf-8")
    (tmp_path / "shared" / "middle.yaml").write_text("extends: ../base.yaml\nannotate: [attribution]\n")
    (tmp_path / "mine" / "p.yaml").write_text("extends: ../shared/middle.yaml\nrerank: [min_max]\n")

    assert [step.id for step in examine("../mine/p.yaml", components.registry(), {}).effective.steps()] == [
        "bm25", "fuse", "min_max", "attribution",
    ]  # fmt: skip
    (tmp_path / "mine" / "q.yaml").write_text("extends: middle.yaml\n")
    (missing,) = pipelines.check("../mine/q.yaml", {})
    assert str(missing) == (
        "../mine/q.yaml:1:10: E121 'middle.yaml' is neither a file nor a preset; "
        f"accepted: {', '.join(sorted([*presets(), 'none']))}"
    )
    assert missing.hint == "Paths in a file are relative to it: there is no ../mine/middle.yaml."


@pytest.mark.parametrize("extends", ["p.yaml", "./p.yaml", "../round/p.yaml", "q.yaml"])
def test_files_that_extend_one_another_by_any_path_are_refused(tmp_path: Path, extends: str) -> None:
    folder = tmp_path / "round"
    folder.mkdir()
    (folder / "p.yaml").write_text(f"extends: {extends}\n", encoding="utf-8")
    (folder / "q.yaml").write_text("extends: ../round/p.yaml\n", encoding="utf-8")

    assert "E114" in {problem.code for problem in pipelines.check(str(folder / "p.yaml"), {})}
