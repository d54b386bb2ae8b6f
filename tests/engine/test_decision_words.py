from __future__ import annotations

from typing import Any

import pytest

from speckit_memory.engine.answers.decision_words import decision_words


@pytest.mark.parametrize(
    "heading",
    [
        "## Decision",
        "### 2. **The decision** (accepted)",
        "DECISION\n--------",
        "Decision\n===",
        "  ## decision ##",
        "<!-- Anchor: decision -->",
    ],
)
def test_a_document_says_what_it_decided_under_whatever_form_of_that_heading(heading: str) -> None:
    end = "\n\n<!-- /ANCHOR:decision -->" if heading.startswith("<") else ""
    body = f"# Cache\n\nWe had no decision on caches.\n\n{heading}\n\nWe keep answers for an hour.{end}\n"
    assert decision_words(body) == "We keep answers for an hour."


def test_the_sections_of_a_text_that_has_none_about_a_decision_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("speckit_memory.memory.editing.sections.part", refused)
    body = "# Cache\n\nWe made a decision on caches.\n\n## Why\n\nAnswers repeat.\n"
    assert decision_words(body) == "We made a decision on caches. Answers repeat."


def test_many_blank_lines_are_gone_through_once() -> None:
    assert decision_words("Kept in memory." + "\n" * 150_000 + "- Later on disk.") == "Kept in memory. Later on disk."
