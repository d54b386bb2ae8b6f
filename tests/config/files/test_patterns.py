"""What patterns of `.gitignore` files mean, entry by entry. The answers are those of Git."""

from __future__ import annotations

import pytest

from speckit_memory.config.files.patterns import compile_patterns, last_match


@pytest.mark.parametrize(
    ("patterns", "path", "at"),
    [
        (["docs/"], "docs/", 0),
        (["docs/"], "docs", None),  # a file of that name
        (["docs"], "a/docs", 0),
        (["/docs"], "a/docs", None),
        (["docs/*"], "docs/", None),
        (["docs/**"], "docs/", None),
        (["docs/**"], "docs/a.md", 0),
        (["docs/**  "], "docs/", None),
        (["docs/**", "!docs/a.md"], "docs/a.md", 1),
        (["*", "!*/"], "a/", 1),
        (["*", "!*/"], "a/b.md", 0),  # `!*/` has taken the folder back, not what it holds
        (["**/b/"], "a/b/", 0),
        (["a/**/x.md"], "a/x.md", 0),
        (["a/**/x.md"], "a/b/c/x.md", 0),
        (["[xy].md"], "y.md", 0),
        (["*.md", "!keep.md"], "a/keep.md", 1),
        (["# remark", "a"], "a", 1),
        (["a\\ "], "a ", 0),
        (["[z"], "z", None),
        ([], "a", None),
    ],
)
def test_the_last_pattern_that_matches_the_entry_itself_decides(patterns: list[str], path: str, at: int | None) -> None:
    assert last_match(compile_patterns(patterns), path.rstrip("/"), path.endswith("/")) == at


@pytest.mark.parametrize("pattern", ["!", "a\\", "[z-a]"])
def test_what_is_no_pattern_is_a_value_error(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"pattern|range"):
        compile_patterns(["a", pattern])


def test_a_class_of_characters_that_the_library_does_not_know_raises_no_warning() -> None:
    assert len(compile_patterns(["[[:foo:]]"]).patterns) == 1
