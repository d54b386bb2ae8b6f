"""`eval sensitivity` through the installed command: what is wrong is said shortly, with what is near and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.doors import Ran, call

ASKED = ["eval", "sensitivity", "--dataset", "bundled"]


def refused(root: Path, *options: str) -> Ran:
    ran = call(root, [*ASKED, *options]).ended(2)
    assert len(ran.err) < 700, "an error is no list of all there is"
    return ran


@pytest.mark.parametrize(
    ("options", "found", "offered"),
    [
        (("--parameter", "bm25.kk"), "--parameter: 'bm25.kk' is not a number of 'default'", "bm25.k1 (1.2)"),
        (("--parameter", "k1"), "--parameter: 'k1' is not a number of 'default'", "Nearest are bm25.k1 (1.2)."),
        (("--parameter", "bm25.nothing"), "is not a number of 'default'", "The step 'bm25' has limit, k1, b,"),
        (("--parameter", "nothing"), "is not a number of 'default'", "belong to the steps times, spelling,"),
        (("--pipeline", "bm25"), "'bm25' has no rank fusion, and so no k", "Its step 'bm25' has limit, k1, b,"),
    ],
)
def test_a_number_that_is_not_there_is_answered_by_those_that_are_near(
    tmp_path: Path, options: tuple[str, ...], found: str, offered: str
) -> None:
    said = refused(tmp_path, *options).err

    assert found in said
    assert offered in said
    assert "name a number with --parameter STEP.PARAM and give --values" in said


def test_all_values_that_are_no_numbers_are_named_at_once(tmp_path: Path) -> None:
    said = refused(tmp_path, "--values", "20,x,40,inf").err

    assert "'--values': 'x' (the 2. of 4), 'inf' (the 4. of 4) are not finite numbers; accepted are numbers" in said


def test_all_values_out_of_range_are_named_at_once(tmp_path: Path) -> None:
    ran = call(tmp_path, [*ASKED, "--parameter", "bm25.k1", "--values=-1,99999"]).ended(2)
    assert "must be a number from 0 to 10; found -1.0" in ran.err
    assert "must be a number from 0 to 10; found 99999.0" in ran.err
