"""Patterns of ignore files that try every way of dividing a name, and what all patterns go on to mean."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest
from pathspec import GitIgnoreSpec
from tally import Tally

from speckit_memory.config.files.patterns import _stepwise, compile_patterns, last_match
from speckit_memory.config.workspace.options import SourcePattern, SourcePatterns
from speckit_memory.errors import Where
from speckit_memory.memory.scanning.scanner import scan
from tests.attacks.swaps import in_time

STARS = [
    "*a" * 12 + "b", "**/a" * 12 + "/b", "*a*" * 10, "a**" * 20 + "b", "[a]*" * 15 + "b", "?*" * 30 + "b",
    "**/*a*/" * 9 + "b",
]  # fmt: skip
NAMES = ["a" * 250, "/".join(["a"] * 120), "/".join(["a" * 20] * 90), "/".join(["ab" * 15] * 50)]


@pytest.mark.parametrize("pattern", STARS)
def test_no_pattern_takes_long_on_any_name(pattern: str, tally: Tally) -> None:
    made = compile_patterns([pattern])
    for name in NAMES:
        in_time(partial(last_match, made, name, False))
        tally.tried()


def test_a_scan_is_not_kept_by_patterns_that_try_every_way(tmp_path: Path, tally: Tally) -> None:
    root = tmp_path
    (root / ".gitignore").write_text("\n".join([*STARS, "x" * 10_000, "*.tmp.md"]), encoding="utf-8")
    (root / f"{'a' * 240}.md").write_text("quokka", encoding="utf-8")
    (root / "no.tmp.md").write_text("quokka", encoding="utf-8")
    includes = tuple(SourcePattern(f"{star}/.n", Where("c", 1, 1)) for star in STARS)

    found = in_time(lambda: scan([root], root, SourcePatterns(includes)))

    assert f"{'a' * 240}.md" in found.files or found.ignored
    assert any(key == "no.tmp.md" for key in found.ignored)
    assert [problem.code for problem in found.remarks] == ["E114"]
    tally.tried(len(STARS))


@pytest.mark.parametrize("seed", range(6))
def test_patterns_mean_what_they_meant_before_they_were_made_quick(seed: int, tally: Tally) -> None:
    choose = random.Random(seed)
    parts = ["a", "b", "ab", "*", "?", "/", "**", "**/", "/**/", "[ab]", "\\*", "*"]
    for _ in range(300):
        pattern = "!" * (choose.random() < 0.1) + "".join(choose.choices(parts, k=choose.randint(1, 7)))
        try:
            plain = GitIgnoreSpec.from_lines([_stepwise(pattern)], backend="simple")
            quick = compile_patterns([pattern])
        except ValueError:
            continue
        for _ in range(10):
            path = "/".join("".join(choose.choices("ab*", k=choose.randint(1, 4))) for _ in range(choose.randint(1, 5)))
            for is_folder in (True, False):
                assert last_match(quick, path, is_folder) == last_match(plain, path, is_folder), (pattern, path)
                tally.tried()


@pytest.mark.parametrize(
    ("pattern", "path", "ignored"),
    [
        ("secret.md", "we\nird/secret.md", True), ("*.md", "a.md\n", False), ("a/**/b.md", "a/\n/b.md", True),
        ("*[!a]", "ba", False), ("*[!a]", "bb", True), ("a[!x]b", "a/b", False),
    ],
)  # fmt: skip
def test_a_line_end_or_a_class_in_a_name_changes_no_rule(pattern: str, path: str, ignored: bool, tally: Tally) -> None:
    assert (last_match(compile_patterns([pattern]), path, True) is not None) == ignored
    tally.tried()
