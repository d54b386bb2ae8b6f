"""Who decides what is noted beside answers, and all that can be wrong with it, at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.config.options.recording_modes import RecordingOptions
from speckit_memory.config.workspace.recording import recording_in_force
from speckit_memory.config.workspace.settings import settings
from speckit_memory.config.workspace.workspace_file import read_workspace_config
from speckit_memory.errors import SpeckitError


def said(root: Path, text: str) -> Path:
    (root / ".speckit").mkdir(exist_ok=True)
    (root / ".speckit" / "config.yaml").write_text(text, encoding="utf-8")
    return root


def in_force(root: Path, **environ: str) -> RecordingOptions:
    return recording_in_force(settings(root=root, environ=environ))


def test_the_environment_goes_before_the_file_and_the_file_before_the_default(tmp_path: Path) -> None:
    assert in_force(tmp_path) == RecordingOptions(
        "all", keep_texts=7, keep_days=90, max_mb=50, observe=0.05, sample=1.0
    )
    said(tmp_path, "evaluation:\n")
    assert in_force(tmp_path) == RecordingOptions()
    said(tmp_path, "evaluation: {record: shadows, keep_texts: 30, keep_days: 7, max_mb: 5, observe: 1, sample: 0.25}\n")
    assert in_force(tmp_path) == RecordingOptions(
        "shadows", keep_texts=30, keep_days=7, max_mb=5, observe=1, sample=0.25
    )
    assert in_force(tmp_path, SPECKIT_EVALUATION=" OFF ").record == "off"
    assert in_force(tmp_path, SPECKIT_EVALUATION="").record == "shadows"


@pytest.mark.parametrize(
    ("written", "days"),
    [("keep_texts: never", 0), ("keep_texts: 0", 0), ("keep_texts: 30", 30), ("texts: false", 0), ("texts: true", 90),
     ("texts: true, keep_days: 20", 20), ("texts: true, keep_texts: 3", 3)],
)  # fmt: skip
def test_words_are_kept_for_days_or_never_and_as_earlier_versions_wrote_it(
    tmp_path: Path, written: str, days: int
) -> None:
    assert in_force(said(tmp_path, f"evaluation: {{{written}}}\n")).keep_texts == days


def test_a_variable_that_means_nothing_is_refused_with_what_does(tmp_path: Path) -> None:
    with pytest.raises(SpeckitError) as raised:
        in_force(tmp_path, SPECKIT_EVALUATION="shadow")
    assert str(raised.value) == "E030 SPECKIT_EVALUATION is 'shadow'; did you mean 'shadows'?"


DAYS = "a whole number of days from 1 to 3650"
SHARE = "a share of the queries from 0 to 1"


@pytest.mark.parametrize(
    ("written", "message", "column"),
    [
        ("recrod: all", "'evaluation' has no key 'recrod'; did you mean 'record'?", 3),
        ("record: some", "'record' must be one of all, shadows, \"off\"; found 'some'", 11),
        ("keep_texts: always", "'keep_texts' must be never, or a whole number of days up to 3650; found 'always'", 15),
        ("keep_texts: -1", "'keep_texts' must be never, or a whole number of days up to 3650; found -1", 15),
        ("texts: 1", "'texts' must be true or false; found 1", 10),
        ("keep_days: 0", f"'keep_days' must be {DAYS}; found 0", 14),
        ("keep_days: true", f"'keep_days' must be {DAYS}; found True", 14),
        ("max_mb: 0.5", "'max_mb' must be a whole number of megabytes from 1 to 10000; found 0.5", 11),
        ("observe: 5", f"'observe' must be {SHARE}; found 5", 12),
        ("sample: {a: 1}", f"'sample' must be {SHARE}; found a mapping", 11),
    ],
)
def test_what_cannot_be_meant_is_refused_at_its_place(tmp_path: Path, written: str, message: str, column: int) -> None:
    config, [problem] = read_workspace_config(said(tmp_path, f"evaluation:\n  {written}\n"))
    assert problem.message == message
    assert problem.where is not None
    assert (problem.where.line, problem.where.column) == (2, column)
    assert config.evaluation == RecordingOptions()


def test_another_form_than_a_mapping_is_refused(tmp_path: Path) -> None:
    _, [problem] = read_workspace_config(said(tmp_path, "evaluation: [all]\n"))
    keys = "record, keep_texts, keep_days, max_mb, observe, sample"
    assert str(problem.where).endswith(":1:13")
    assert problem.message == f"'evaluation' must be a mapping with {keys}; found a list"


def test_off_without_quotes_is_what_yaml_readers_disagree_on(tmp_path: Path) -> None:
    assert read_workspace_config(said(tmp_path, 'evaluation: {record: "off"}\n'))[0].evaluation.record == "off"
    _, [problem] = read_workspace_config(said(tmp_path, "evaluation: {record: off}\n"))
    assert problem.code == "E113"
