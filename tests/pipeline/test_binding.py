from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.engine.pipelines import pipelines


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("{use: bm25, fields: {titel: 1}}", "bm25 has no parameter 'fields.titel'; did you mean 'title'?"),
        ("{use: bm25, limti: 9}", "bm25 has no parameter 'limti'; did you mean 'limit'?"),
        ("{use: bm25, single: {x: 1}}", "bm25 has no parameter 'single.x'; accepted: "),
    ],
)
@pytest.mark.requirement("P7")
def test_a_misspelt_parameter_is_offered_right_at_any_depth(tmp_path: Path, step: str, message: str) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(f"candidates:\n  channels: [{step}, vector]\nfusion: [rrf]\n", encoding="utf-8")

    assert any(problem.message.startswith(message) for problem in pipelines.check(str(file), {}))
