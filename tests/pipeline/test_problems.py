"""One mistake is one problem, at the place where it is mended (feature P7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.engine.pipelines import pipelines

BASE = """\
pipeline: mine
candidates:
  understand: []
  channels:
    - {use: bm25}
    - {use: vector}
  recover: []
fusion:
  - {use: rrf}
rerank: []
annotate: []
extends: none
"""
TWO = "    - {use: bm25}\n    - {use: vector}\n"
MISTAKES = {
    "an alias": ("{use: vector}", "*bm25", "6:7: E111 aliases (*name) are not accepted"),
    "an anchor with its alias": (TWO, "    - &a {use: bm25}\n    - *a\n", "6:7: E111 aliases (*name) are not accepted"),
    "an alias as a value": (TWO, "    - {use: bm25, limit: &l 20}\n    - {use: vector, limit: *l}\n", "6:28: E111"),
    "two steps of one id": ("{use: vector}", "{use: bm25}", "6:7: E119 the id 'bm25' is taken by the step at line 5"),
    "two fusers of one id": ("{use: rrf}", "{use: rrf}\n  - {use: rrf}", "10:5: E119 'rrf' is a second fuser"),
    "an empty id": ("annotate: []", "annotate: [{use: attribution, id: ''}]", "11:35: E119 the 'id' of a step"),
    "weights of an unknown channel": ("{use: rrf}", "{use: rrf, weights: {bm52: 2}}", "9:32: E119 'rrf': there is no"),
    "a channel under rerank": ("rerank: []", "rerank: [bm25]", "10:10: E117 'bm25' is a channel and cannot be"),
    "a fuser under rerank": ("rerank: []", "rerank: [rsf]", "10:10: E117 'rsf' is a fuser and cannot be used under"),
    "a note under fusion": ("{use: rrf}", "{use: rrf}\n  - attribution", "10:5: E117 'attribution' is an annotator"),
    "a signal under annotate": ("annotate: []", "annotate: [novelty]", "11:12: E117 'novelty' is a signal and changes"),
    "a token budget below any row": (
        "annotate: []",
        "annotate: [{use: token_budget, budget: -5}]",
        "11:40: E118 'budget' of the step 'token_budget': must be a whole number from 100 up, or by_complexity",
    ),
    "a number beyond its range": (
        "rerank: []",
        "rerank: [min_max, {use: mmr, lambda: 1.5}]",
        "10:38: E118 'lambda' of the step 'mmr': must be a number from 0 to 1, or by_intent; found 1.5",
    ),
    "a weight that is no number": (
        "{use: rrf}",
        "{use: rrf, weights: {bm25: heavy}}",
        "9:32: E118 'weights.bm25' of the step 'rrf': must be a number from 0 to 10; found 'heavy'",
    ),
    "weights of no known form": (
        "{use: rrf}",
        "{use: rrf, weights: 3}",
        "9:25: E118 'weights' of the step 'rrf': must be one of by_intent, by_intent_ageless, or a mapping of keys to "
        "values; found 3",
    ),
    "a limit of an unknown state": (
        "annotate: []",
        "annotate: [{use: state_filter, limits: {COOL: 3}}]",
        "11:47: E118 state_filter has no parameter 'limits.COOL'; did you mean 'COLD'?",
    ),
    "not a number": ("{use: vector}", "{use: vector, limit: .nan}", "6:28: E114 '.nan' is not a finite number"),
    "no channel but a reranker": (
        TWO,
        "    - mmr\n",
        "5:7: E117 'mmr' is a reranker and cannot be used under 'channels'",
    ),
}


@pytest.mark.requirement("P7")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_one_mistake_is_one_problem_at_its_place(mistake: str, tmp_path: Path) -> None:
    old, new, expected = MISTAKES[mistake]
    assert BASE.count(old) == 1
    file = tmp_path / "p.yaml"
    file.write_text(BASE.replace(old, new), encoding="utf-8")

    [problem] = pipelines.check(str(file), {})

    assert str(problem).startswith(f"{file}:{expected}")
