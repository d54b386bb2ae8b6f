"""What readers find useful changes what the catalogue's pipeline answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from answered import refused

from speckit_memory.engine import Memory

NOW = 1_800_000_000.0
BEST, JUDGED, LAST = "notes/fusion.md", "notes/ranks.md", "notes/lists.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / BEST).write_text("# Rank fusion\n\nRank fusion: scores of the channels are fused by rank.\n")
    (tmp_path / JUDGED).write_text("# Ranks\n\nHow a list of ranks is read, and fusion of two lists of them.\n")
    (tmp_path / LAST).write_text("# Lists\n\nA list of shopping, a list of friends, and one rank among them.\n")
    with opened(tmp_path) as memory:
        assert len(memory.index([tmp_path]).created) == 3
    return tmp_path


@contextmanager
def opened(root: Path, *flags: str) -> Iterator[Memory]:
    environ = dict.fromkeys(flags, "true")
    with Memory.open(root / "memory.db", "catalogue", root=root, environ=environ, strict=True) as memory:
        yield memory


def evidence(memory: Memory, step: str) -> dict[str, float]:
    """What the step gives each memory in the answer to the same question at the same time."""
    result = memory.search("rank fusion", now=NOW, deadline_ms=None)
    explained = [memory.explain.row(result, row.id) for row in result.results]
    return {each.key: one.parts[step] for each in explained for one in each.steps if one.step == step}


def scores(memory: Memory) -> dict[str, float]:
    return {row.key: row.score for row in memory.search("rank fusion", now=NOW, deadline_ms=None).results}


def judge(memory: Memory, *judgements: bool) -> None:
    for useful in judgements:
        memory.learning.validate(JUDGED, useful=useful)


@pytest.mark.requirement("F17", "F18")
def test_validated_quality_is_a_factor_of_the_score(root: Path) -> None:
    with opened(root, "SPECKIT_VALIDATION_SIGNALS") as memory:
        before = scores(memory)
        assert list(before) == [BEST, JUDGED, LAST]
        assert evidence(memory, "validation") == {BEST: 1.0, JUDGED: 1.0, LAST: 1.0}  # 0.9 + 0.2 · 0.5
        judge(memory, *[True] * 3)
        assert evidence(memory, "validation") == pytest.approx({BEST: 1.0, JUDGED: 1.06, LAST: 1.0})  # 0.9 + 0.2 · 0.8
        judge(memory, *[False] * 14)
        assert evidence(memory, "validation") == pytest.approx({BEST: 1.0, JUDGED: 0.92, LAST: 1.0})  # 0.9 + 0.2 · 0.1
        after = scores(memory)
        assert after[JUDGED] < before[JUDGED]


@pytest.mark.requirement("F17")
def test_confidence_raises_what_was_useful_and_lowers_what_was_not(root: Path) -> None:
    with opened(root, "SPECKIT_VALIDATION_SIGNALS", "SPECKIT_CONFIDENCE_BOOST") as memory:
        before = scores(memory)
        assert evidence(memory, "confidence") == {BEST: 0.0, JUDGED: 0.0, LAST: 0.0}
        judge(memory, True, True, True)
        # 0.1 · (0.8 - 0.5) / 0.5
        assert evidence(memory, "confidence") == pytest.approx({BEST: 0.0, JUDGED: 0.06, LAST: 0.0})
        judge(memory, *[False] * 8)
        # 0.1 · (0.4 - 0.5) / 0.5
        assert evidence(memory, "confidence") == pytest.approx({BEST: 0.0, JUDGED: -0.02, LAST: 0.0})
        after = scores(memory)
        assert after[JUDGED] < before[JUDGED]


@pytest.mark.requirement("F16", "F17")
def test_a_folder_gains_by_the_mean_confidence_of_its_memories(root: Path) -> None:
    with opened(root, "SPECKIT_FOLDER_SCORING") as memory:
        before = evidence(memory, "folder_score")
        judge(memory, *[True] * 5)
        after = evidence(memory, "folder_score")
        # weight 0.1 · part 0.10 · change of the mean ((1.0 + 0.5 + 0.5) / 3 - 0.5) for all of the folder
        assert {key: after[key] - before[key] for key in after} == pytest.approx(dict.fromkeys(after, 0.1 * 0.1 / 6))


@pytest.mark.requirement("F7", "F17")
def test_a_promoted_memory_counts_as_critical_and_stays_so_when_its_file_changes(root: Path) -> None:
    with opened(root) as memory:
        judge(memory, *[True] * 5)
        assert evidence(memory, "importance") == {BEST: 1.0, JUDGED: 1.0, LAST: 1.0}
        pattern = evidence(memory, "composite")[JUDGED]
        assert memory.learning.promote(JUDGED).tier == "critical"
        assert evidence(memory, "importance") == {BEST: 1.0, JUDGED: 2.0, LAST: 1.0}
        assert evidence(memory, "composite")[JUDGED] > pattern

        (root / JUDGED).write_text("# Rank fusion\n\nScores of the channels are fused by rank, as measured.\n")
        assert memory.index([root]).updated == [JUDGED]
        assert evidence(memory, "importance") == {BEST: 1.0, JUDGED: 2.0, LAST: 1.0}

        (root / JUDGED).write_text("---\nimportance_tier: constitutional\n---\n# Rank fusion\n\nFused by rank.\n")
        memory.index([root])
        assert evidence(memory, "importance") == {BEST: 1.0, JUDGED: 3.0, LAST: 1.0}

        (root / JUDGED).write_text("---\nimportance_tier: deprecated\n---\n# Rank fusion\n\nFused by rank.\n")
        memory.index([root])
        assert list(scores(memory)) == [BEST, LAST]


@pytest.mark.requirement("F17")
def test_promotion_without_trust_is_refused(root: Path) -> None:
    with opened(root) as memory:
        judge(memory, True)
        with refused("E082", match="and 1 of 5 validations"):
            memory.learning.promote(memory.get(JUDGED).id)
