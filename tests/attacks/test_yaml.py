"""Pipeline files of any size and shape: refused in short, at a place, and soon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tally import Tally

from speckit_memory.config.pipelines.pipeline_file import MOST_STEPS
from speckit_memory.config.yaml.reader import MOST_CHARACTERS, MOST_VALUES, read
from speckit_memory.engine.pipelines import pipelines
from speckit_memory.errors import Problem, SpeckitError
from tests.server.doors import call

MOST = 40_000


def problems_of(tmp_path: Path, text: str) -> list[Problem]:
    (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
    try:
        return list(pipelines.check(str(tmp_path / "p.yaml"), {}))
    except SpeckitError as error:  # of a file that is not even read
        return list(error.problems)


def size(problems: list[Problem]) -> int:
    return len(json.dumps([problem.as_json() for problem in problems]))


STEPS = "fusion:\n  - {use: z_score}\n" + "  - {use: importance}\n" * 50_000
HUGE = {
    "50,000 steps": (STEPS, "E110"),
    "201 steps": ("annotate:\n" + "  - attribution\n" * (MOST_STEPS + 1), "E114"),
    "201 unknown steps": ("rerank:\n" + "  - no_such_step\n" * (MOST_STEPS + 1), "E114"),
    "201 channels": ("candidates:\n  channels: [" + "bm25, " * (MOST_STEPS + 1) + "]\n", "E114"),
    "200 steps of one name": ("rerank:\n" + "  - mmr\n" * MOST_STEPS, "E119"),
    "50,000 unknown keys": ("".join(f"k{number}: 1\n" for number in range(50_000)), "E111"),
    "4,000 unknown keys": ("".join(f"k{number}: 1\n" for number in range(4_000)), "E115"),
    "4,000 unknown parameters": (
        "fusion:\n  - use: z_score\n" + "".join(f"    k{number}: 1\n" for number in range(4_000)), "E118"
    ),
    "2,000 unknown weights": (
        "fusion:\n  - use: rrf\n    weights: {" + ", ".join(f"k{number}: 1" for number in range(2_000)) + "}\n", "E119"
    ),
    "4,000 times one key": ("pipeline: mine\n" * 4_000, "E112"),
    "a key of half a megabyte": ("k" * 500_000 + ": 1\n", "E111"),
    "a key in quotes of half a megabyte": ("? '" + "k" * 500_000 + "'\n: 1\n", "E115"),
    "a name of a step of half a megabyte": ("rerank: [{use: '" + "s" * 500_000 + "'}]\n", "E116"),
    "an id of half a megabyte, twice": ("rerank: [{use: mmr, id: &a '" + "s" * 500_000 + "'}, mmr, mmr]\n", "E119"),
    "extends half a megabyte": ("extends: '" + "e" * 500_000 + "'\n", "E014"),
    "a flag of half a megabyte": ("rerank: [{use: mmr, flag: '" + "F" * 500_000 + "'}]\n", "E120"),
    "a value of half a megabyte": ("fusion: [{use: z_score, weights: '" + "v" * 500_000 + "'}]\n", "E118"),
    "a number of 100,000 digits": ("fusion: [{use: rrf, k: " + "9" * 100_000 + "}]\n", "E114"),
    "two megabytes": ("# " + "c" * (2 << 20) + "\n", "E110"),
    "nesting": ("a: " + "[" * 100_000 + "\n", "E111"),
    "nesting by blanks": ("".join(" " * depth + "a:\n" for depth in range(1_000)), "E111"),
    "aliases": ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "E111"),
    "an anchor of itself": ("a: &a [*a]\n", "E111"),
    "100 documents": ("---\na: 1\n" * 100, "E111"),
    "control characters": ("a: \x00\n", "E111"),
}  # fmt: skip

TWO = "candidates:\n  channels: [bm25, vector]\n"


@pytest.mark.parametrize("kind", HUGE)
def test_a_huge_pipeline_file_is_refused_in_short_and_at_a_place(tmp_path: Path, tally: Tally, kind: str) -> None:
    text, code = HUGE[kind]
    problems = problems_of(tmp_path, text)
    assert code in {problem.code for problem in problems}
    assert all(problem.where for problem in problems if code != "E110")  # what is too long to be read has no places
    if kind not in ("4,000 times one key", "2,000 unknown weights", "200 steps of one name"):
        assert size(problems) < MOST
    ran = call(tmp_path, ["pipeline", "check", "p.yaml"]).ended(2)
    assert len(ran.out + ran.err) < MOST
    assert code in ran.out + ran.err
    tally.tried()


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (TWO + "fusion:\n  - use: z_score\n    weights: {bm25: 0, vector: 0}\n", 5, "every channel has the weight 0"),
        (TWO + "fusion:\n  - use: rrf\n    weights: {bm25: 0.0, vector: -0.0}\n", 5, "every channel has the weight 0"),
        ("fusion:\n  - {use: z_score, weights: {bm25: -1}}\n", 2, "must be"),
        ("fusion:\n  - {use: z_score, weights: {bm25: .nan}}\n", 2, "not a finite number"),
        ("fusion:\n  - {use: z_score, weights: {bm25: .inf}}\n", 2, "not a finite number"),
        ("fusion:\n  - {use: z_score, weights: {bm25: 1e999}}\n", 2, "not a finite number"),
        ("fusion:\n  - {use: z_score, weights: {bm25: 1e300}}\n", 2, "must be"),
        ("fusion:\n  - {use: z_score, weights: [1]}\n", 2, "must be"),
        ("candidates:\n  channels: []\n", 2, "needs at least one channel"),
        ("candidates:\n  channels:\n", 2, "found nothing"),
        ("candidates:\n  channels: [{use: bm25, limit: 0}]\n", 2, "limit"),
        ("candidates:\n  channels: [{use: bm25, limit: -1}]\n", 2, "limit"),
        ("candidates:\n  channels: [{use: bm25, limit: 9223372036854775808}]\n", 2, "limit"),
        ("candidates:\n  channels: [{use: bm25, limit: 1.5}]\n", 2, "limit"),
        ("fusion: []\n", 1, "needs a fuser"),
        ("budgets_ms: {simple: 0}\n", 1, "above 0"),
    ],
)  # fmt: skip
def test_figures_that_cannot_be_meant_are_refused_where_they_stand(
    tmp_path: Path, tally: Tally, text: str, line: int, said: str
) -> None:
    problems = problems_of(tmp_path, text)
    assert [problem for problem in problems if said in problem.message and problem.where and problem.where.line == line]
    tally.tried()


@pytest.mark.parametrize("value", ["nan", ".nan", ".inf", "-1", "1e999", "9" * 5000, "[", "x" * 100_000, "\0"])
def test_overrides_that_cannot_be_meant_are_refused(tmp_path: Path, tally: Tally, value: str) -> None:
    problems = pipelines.check("default", {}, {"z_score.weights.bm25": value})
    assert problems
    assert size(list(problems)) < MOST
    tally.tried()


def test_what_people_write_is_far_below_the_limits(tally: Tally) -> None:
    text = "trigger_phrases:\n" + "".join(f"  - phrase number {number}\n" for number in range(MOST_VALUES - 10))
    node, problems = read(text, "a.md")
    assert (node is not None, problems) == (True, [])
    assert len(text) < MOST_CHARACTERS
    tally.tried()
