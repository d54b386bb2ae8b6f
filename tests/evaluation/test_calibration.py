from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged_sets import PIPELINE, write

from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.running.run import Evaluation
from speckit_memory.evaluation.running.trials import open_sets
from speckit_memory.evaluation.tuning.calibration import calibrate, threshold
from speckit_memory.evaluation.tuning.calibration_report import Rate
from speckit_memory.pipeline.ports import Column

NOW = 1_790_000_000.0
SHARES = st.lists(st.floats(0, 1), min_size=30, max_size=80).map(np.array)


@given(answerable=st.lists(SHARES, min_size=1, max_size=3), rate=st.floats(0.05, 0.5))
def test_a_threshold_keeps_the_rate_and_the_next_higher_value_does_not(answerable: list[Column], rate: float) -> None:
    limit = threshold(answerable, rate)
    assert np.mean([np.mean(column < limit) for column in answerable]) <= rate
    higher = [value for column in answerable for value in column if value > limit + 1e-4]
    if higher:
        nearest = min(higher)
        assert np.mean([(np.sum(column < nearest) + 1) / (len(column) + 1) for column in answerable]) > rate


@given(answerable=SHARES)
def test_a_lower_rate_never_has_a_higher_threshold(answerable: Column) -> None:
    limits = [threshold([answerable], rate) for rate in (0.05, 0.1, 0.2, 0.4)]
    assert limits == sorted(limits)


def test_a_threshold_is_a_quantile_on_the_safe_side() -> None:
    hundredths = np.arange(1, 101) / 100
    assert threshold([hundredths], 0.05) == 0.05  # warns of 4 in 100; 5 in 101 with the next question
    assert threshold([hundredths, hundredths[::-1]], 0.05) == 0.05


def test_too_few_questions_cannot_promise_a_low_rate() -> None:
    with pytest.raises(SpeckitError, match=r"10 judged queries are too few, or find too little, to keep .* of 0\.05"):
        threshold([np.arange(10) / 10], 0.05)


def test_a_rate_is_a_weighted_share() -> None:
    warned = np.array([True, False, False, True])
    assert Rate.of(warned, np.ones(4)).share == 0.5
    assert Rate.of(warned, np.array([0.5, 0.5, 1.5, 1.5])).share == 0.5
    assert Rate.of(warned, np.array([1.5, 0.5, 1.5, 0.5])).share == 0.5
    assert Rate.of(np.array([], bool), np.ones(0)) == Rate(None, None, 0)


@pytest.mark.requirement("A4.text")
@pytest.mark.usefixtures("simulated")
def test_the_calibrated_step_warns_as_often_as_the_report_says(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(PIPELINE.replace("annotate: []", "annotate: [{use: evidence_gap, form: coverage, top: 3}]"))
    # each question has the words of its answer, and so many that stand nowhere
    unknown = [5] * 4 + [4] * 3 + [3] * 10 + [1] * 43
    folder = write(
        tmp_path / "shares",
        [(f"d{n}", f"note {n}", f"about alpha{n} beta{n} gamma{n} delta{n}") for n in range(60)],
        [
            (f"alpha{n} beta{n} gamma{n} delta{n} " + " ".join(f"missing{n}x{m}" for m in range(count)), f"d{n}")
            for n, count in enumerate(unknown)
        ],
    )
    report = calibrate(str(file), [folder], false_alarms=0.15, folds=3, environ={}, now=NOW)
    (ground,) = Evaluation(folder, environ={}).grounds
    with open_sets([(ground, Evaluation().sample(ground, 1))], str(file), environ={}, progress=lambda _: None) as (
        opened,
    ):
        memory = opened.memory.using(str(file), report.overrides)
        answers = [memory.search(query.text, now=NOW, deadline_ms=None) for query in opened.queries]
    warned = np.array([answer.notes.evidence_gap for answer in answers])
    shares = np.array([answer.notes.facts["coverage"] for answer in answers])
    assert warned.tolist() == (shares < report.threshold).tolist()
    assert warned.tolist() == [count >= 4 for count in unknown]
    assert report.start == 0.4
    assert report.before is not None
    assert report.before.answerable.share == np.mean(shares < 0.4)
    warning = next(answer.notes.warnings[0] for answer in answers if answer.notes.evidence_gap)
    assert ", which 15% of the answerable queries miss" in warning
    assert (report.overall.foreign.share, report.overall.removed.share) == (None, 1.0)
    assert report.overall.answerable == report.held_out[0].answerable
