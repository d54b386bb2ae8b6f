"""Sections that headings name: in which words, how far they reach, and which of several answer."""

from __future__ import annotations

import pytest

from speckit_memory.memory.parsing.markdown import known_sections
from speckit_memory.memory.parsing.markdown.known_sections import VOCABULARY, named_sections, slug, spellings

TEXT = """# Hand-over

## 1. CURRENT STATUS *(mandatory)*

Half done.

### What's next?

Measure it.

## Remaining work

Ship it.

```
## Blockers
```

Known blockers
--------------

The licence.
"""


@pytest.mark.requirement("I11.sections")
@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("7. OPEN QUESTIONS (mandatory)", "open-questions"),
        ("**Risks** & the Mitigations", "risks-mitigations"),
        ("TL;DR", "tl-dr"),
        ("What's next?", "whats-next"),
        ("次のステップ", "次のステップ"),
        ("The", "the"),
        ("—", ""),
    ],
)
def test_a_heading_has_one_name_however_it_is_adorned(heading: str, name: str) -> None:
    assert slug(heading) == name


def found(*names: str) -> list[tuple[str, str]]:
    return [(one.name, TEXT[one.start : one.end].strip().splitlines()[-1]) for one in named_sections(TEXT, names)]


@pytest.mark.requirement("I11.sections")
def test_sections_reach_from_their_heading_to_the_next_of_its_level() -> None:
    assert found("state") == [("state", "Measure it.")]  # with what is nested in it
    assert found("next-steps") == [("next-steps", "Measure it."), ("next-steps", "```")]
    assert found("blockers") == [("blockers", "The licence.")]  # and not that of the example
    assert found("decisions", "") == []


@pytest.mark.requirement("I11.sections")
def test_a_heading_that_says_the_name_goes_before_those_that_mean_it() -> None:
    text = "## Overview\n\nfirst\n\n## Summary\n\nsecond\n"
    assert [text[one.start : one.end] for one in named_sections(text, ["summary"])] == ["## Summary\n\nsecond\n"]
    assert [text[one.start : one.end] for one in named_sections(text, ["Overview"])] == ["## Overview\n\nfirst\n\n"]


def test_the_vocabulary_says_nothing_twice_and_spells_what_it_says() -> None:
    for name, headings in VOCABULARY.items():
        slugs = [slug(name), *map(slug, headings)]
        assert "" not in slugs
        assert len(set(slugs)) == len(slugs), name
        assert set(spellings(name)) == set(slugs)
        for heading in headings:
            assert known_sections.answering([heading], name) == [0]


@pytest.mark.requirement("I11.sections")
def test_lines_in_bold_and_longer_headings_answer_where_no_heading_says_the_name_alone() -> None:
    text = "**Next steps:**\n\nfirst\n\n## Status: half done\n\nsecond\n\n**Blockers**\nthird\n\n# Blocked\n\nfourth\n"
    assert [(one.name, one.heading) for one in named_sections(text, ["state", "next-steps", "blockers"])] == [
        ("state", "Status: half done"),
        ("next-steps", "Next steps:"),
        ("blockers", "Blocked"),
    ]
    [state] = named_sections(text, ["state"])
    assert text[state.start : state.end].endswith("third\n\n")
