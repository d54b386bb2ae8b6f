from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.errors import Where
from speckit_memory.memory.parsing.markdown import anchors

TAGS = st.lists(
    st.sampled_from(
        ["<!-- ANCHOR:a -->", "<!-- /ANCHOR:a -->", "<!-- ANCHOR:b -->", "<!-- /ANCHOR:b -->", "```", "text", "\n"]
    ),
    max_size=30,
).map("".join)


@pytest.mark.requirement("I2.sections")
def test_nested_sections_are_found_with_their_lines_and_content() -> None:
    text = "<!-- ANCHOR:outer -->\none\n<!-- ANCHOR:in/ner-1 -->two<!-- /ANCHOR:in/ner-1 -->\n<!-- /ANCHOR:outer -->\n"

    sections, problems = anchors.find(text, "note.md")

    assert problems == []
    assert [(s.id, s.first_line, s.last_line) for s in sections] == [("outer", 1, 4), ("in/ner-1", 3, 3)]
    assert sections[1].content(text) == "two"
    assert sections[0].content(text) == "one\n<!-- ANCHOR:in/ner-1 -->two<!-- /ANCHOR:in/ner-1 -->"


@pytest.mark.requirement("I2.broken")
def test_every_broken_tag_is_reported_with_its_place() -> None:
    text = (
        "<!-- ANCHOR:open -->\n <!-- /ANCHOR:never -->\n<!-- ANCHOR:-bad -->\n"
        "<!-- ANCHOR:twice --><!-- /ANCHOR:twice -->\n<!-- ANCHOR:twice -->\n"
        "<!-- ANCHOR:x --><!-- ANCHOR:y --><!-- /ANCHOR:x -->\n"
    )

    sections, problems = anchors.find(text, "note.md", first_line=11)

    assert [section.id for section in sections] == ["twice", "x"]
    assert [(p.code, p.where, p.message) for p in problems] == [
        ("E091", Where("note.md", 12, 2), "the anchor 'never' is closed but not open here"),
        ("E091", Where("note.md", 13, 1), "'-bad' is not an anchor id"),
        ("E091", Where("note.md", 15, 1), "the anchor 'twice' is opened twice; the first is at line 14"),
        ("E091", Where("note.md", 16, 18), "the anchor 'y' is not closed before the end of 'x'"),
        ("E091", Where("note.md", 11, 1), "the anchor 'open' is not closed"),
    ]


def test_tags_in_code_are_examples() -> None:
    assert anchors.find("```\n<!-- ANCHOR:a -->\n```\nsay `<!-- ANCHOR:b -->`\n", "note.md") == ((), [])


@pytest.mark.parametrize(
    "example",
    [
        "    <!-- ANCHOR:a -->\n    Text.\n    <!-- /ANCHOR:a -->\n",
        "- item\n\n      <!-- ANCHOR:a -->\n",
        "- ```\n  <!-- ANCHOR:a -->\n  ```\n",
        "> ```\n> <!-- ANCHOR:a -->\n",
        "<pre>\n<!-- ANCHOR:a -->\n\n</pre>\n",
        "<!--\nwrite\n<!-- ANCHOR:a -->\n",
        "Write ``one <!-- ANCHOR:a --> two``.\n",
        "Write `one\nof <!-- ANCHOR:a --> two`.\n",
        "Write \\<!-- ANCHOR:a -->.\n",
    ],
)
def test_a_tag_that_a_reader_of_the_page_sees_names_nothing(example: str) -> None:
    assert anchors.find(example, "note.md") == ((), [])


@pytest.mark.parametrize(
    "before",
    [
        "<!-- note -->",
        "<!-- note\n\nof two lines -->\n",
        "- item\n\n  ",
        "> ",
        "<div>\n",
        "A `b` and c` ",
        "| a |\n|---|\n| ",
        "# ",
    ],
)
def test_a_tag_among_other_things_names_its_section(before: str) -> None:
    [section], problems = anchors.find(f"{before}<!-- ANCHOR:a --> x <!-- /ANCHOR:a -->\n", "note.md")
    assert (section.id, problems) == ("a", [])


@given(TAGS)
def test_sections_are_nested_and_stretches_name_the_innermost(text: str) -> None:
    sections, _ = anchors.find(text, "note.md")

    for first in sections:
        for second in sections:
            assert (
                first.end <= second.start
                or second.end <= first.start
                or first == second
                or (first.inner_start <= second.start and second.end <= first.inner_end)
                or (second.inner_start <= first.start and first.end <= second.inner_end)
            )
    stretches = anchors.borders(sections)
    assert [offset for offset, _ in stretches] == sorted(offset for offset, _ in stretches)
    for offset in range(len(text)):
        inside = [section for section in sections if section.start <= offset < section.end]
        innermost = max(inside, key=lambda section: section.start).id if inside else ""
        assert [name for start, name in stretches if start <= offset][-1] == innermost


@pytest.mark.requirement("I2")
@pytest.mark.parametrize("start", ["<!--", "<!-- /", "<!-- ANCHOR", "<!-- ANCHOR:", "<!-- ANCHOR:name"])
def test_a_tag_that_is_lost_in_blanks_is_no_tag_and_takes_linear_time(start: str) -> None:
    text = start + " " * 40_000 + "\n" * 40_000  # minutes, were the blanks divided in every way

    assert anchors.find(text, "note.md") == ((), [])
    assert anchors.without_tags(text) == text


@pytest.mark.requirement("I2")
@pytest.mark.parametrize("name", ["", "a", "ab", "a b", "x" * 200])
def test_a_tag_is_recognised_however_it_is_spaced(name: str) -> None:
    for tag in (f"<!--ANCHOR:{name}-->", f"<!--  / \t anchor : {name} \n -->"):
        assert anchors.without_tags(f"before{tag}after") == "before after"


def test_a_name_of_more_than_200_characters_makes_no_tag() -> None:
    text = f"<!-- ANCHOR:{'x' * 201} -->"

    assert anchors.without_tags(text) == text
