from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.config.options.saving import PASSAGES, PREDICTION_ERROR, QUALITY, SECRETS, SavingRules
from speckit_memory.config.workspace.workspace_file import read_workspace_config


def said(root: Path, text: str) -> tuple[SavingRules, list[tuple[str, int]]]:
    (root / ".speckit").mkdir(exist_ok=True)
    (root / ".speckit" / "config.yaml").write_text(text)
    config, problems = read_workspace_config(root)
    return config.saving, [(problem.code, problem.where.line if problem.where else 0) for problem in problems]


@pytest.mark.requirement("I9.secrets", "I10.required", "M6.override")
def test_how_documents_are_taken_in_is_written_in_the_file_of_the_workspace(tmp_path: Path) -> None:
    assert said(tmp_path, "saving:\n") == (SavingRules("credentials", "report", "act", "all"), [])
    every = {"secrets": SECRETS, "quality": QUALITY, "prediction_error": PREDICTION_ERROR, "passages": PASSAGES}
    for name, accepted in every.items():
        for value in accepted:
            rules, problems = said(tmp_path, f"saving: {{{name}: {value}}}\n")
            assert (getattr(rules, name), problems) == (value, [])


@pytest.mark.requirement("I9.secrets")
def test_what_is_wrong_with_it_is_told_with_its_place_and_counts_as_not_written(tmp_path: Path) -> None:
    text = "saving:\n  secrets: none\n  qualty: mend\n  quality: [mend]\n  prediction_error: report\n"

    assert said(tmp_path, text) == (
        SavingRules(prediction_error="report"), [("E115", 3), ("E114", 2), ("E114", 4)],
    )  # fmt: skip
    assert said(tmp_path, "saving: 3\n") == (SavingRules(), [("E114", 1)])
