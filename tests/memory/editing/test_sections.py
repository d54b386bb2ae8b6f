"""Whatever Markdown stands around a section, an edit of it changes nothing else, and is refused where that is not
certain (feature T4)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from textwrap import indent

import pytest
from answered import refused
from markdown_it import MarkdownIt

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.editing.sections import edit_section, parts
from speckit_memory.memory.parsing.declarations.front_matter import parse
from speckit_memory.memory.parsing.markdown.title import plain_text

DOCS = sorted((Path(__file__).parents[3] / "docs").rglob("*.md"))
_PARSER = MarkdownIt("commonmark").enable("table")
_PARSER.core.ruler.enableOnly(["normalize", "block"])

BLOCKS = [
    "Text.", "Two\nlines.  \nwith a break", "   indented a little", "ends with a backslash\\", "\\# no heading",
    "# One", "## Two", "### Three #", "###### Six", "#no", "#\ttab", "## closed ## \t", "  # One", "Set\n===",
    "Set\n---", "Two\nlines\n---", "  Set\n  ==  ", "Set\n=x=", "---", "* * *", "___", " - - -", "Text\n***\nText",
    "    # code", "    code\n\n    ## code", "\tcode\n\t# code", "Text\n    # no code", "```\n# code\n```",
    "~~~ py\n## code\n\n# code\n~~~~", "````\n```\n# code\n```\n````", "``` a\n\n```", "  ```\n  # code\n  ```",
    "```\n<!-- \n```", "``a`` ```b```", "<!-- # note -->", "<!--\n# note\n\n## note\n-->", "<!-- a\n## b --> c",
    "<pre>\n# code\n\n## code\n</pre>", "<script>\n# x\n\n# y\n</script>", "<style>\n# x\n</style>",
    "<textarea>\n\n# x\n\n</textarea>", "<?php\n# x\n\n# y\n?>", "<!DOCTYPE html\n# x\n\n>",
    "<![CDATA[\n# x\n\n# y\n]]>", "<div>\n# raw\n</div>", "<div>\n\n# in a div\n\n</div>",
    "<details><summary>a</summary>\n# raw\n</details>", "<a href='x'>\n# raw\n</a>", "text <b>\n# One",
    "<h1>Name</h1>", "</td>\n# raw", "- # listed", "- a\n- b\n\n  c\n- d", "1. a\n\n   # in an item", "- a\n---",
    "* a\n+ b\n- c", "- a\n  - b\n    - c\n\n      # d", "- ```\n  # code\n  ```", "-\n  # a", "-\n\n  # a",
    "10) a\n# One", "Text\n2. no list", "-     # code", "- a\n# One", "- a\nlazy\n===", "> # quoted",
    "> a\nlazy\n---", "> ```\n> # code\n# One", "> <!--\n> # note\n\nText", ">\n# One", "> - a\n>\n>   # b",
    "| a | b |\n|---|---|\n| # c | d |", "| a | b |\n|--|--|\n# One", "| a |\n|---|\n<!-- note -->\n# One",
    "- | a |\n  |---|\n  | # b |", "[a]: /b", "[a]: /b 'c\nd'\n===", "[a]: /b\nSet\n===", "[a]:\n/b\n---",
    "<!-- ANCHOR:a -->\ntext\n<!-- /ANCHOR:a -->", "    <!-- ANCHOR:a -->", "`<!-- ANCHOR:a -->`", "\u00a0# no",
    "\u2028# no", "Text\n\t\n \nText", "*a\n# One\nb*", "[a\n# One\n](b)",
]  # fmt: skip
OPEN = ["```", "~~~\n# code", "<!--", "<pre>\n# code", "<?", "<![CDATA[", "<!X", "<script>\n\n# x", "````\n```"]
"""Blocks that go on to the end of whatever follows them."""


def headings(body: str) -> list[tuple[int, int, str]]:
    """(line, level, name) of the headings of a text, as a parser of others reads it, lines from 0."""
    tokens = _PARSER.parse(body)
    return [
        (token.map[0], int(token.tag[1:]), plain_text(tokens[index + 1].content))
        for index, token in enumerate(tokens)
        if token.type == "heading_open" and not token.level and token.map
    ]


def check_edits(text: str, content: str = "Wholly new *text*.\n\n> Quoted\n") -> int:
    """Edits every section of a text that has one name; returns how many edits were refused."""
    start = parse(text, "a.md")[0].body_start
    body, refused = text[start:], 0
    found = headings(body)
    counts = Counter(" ".join(name.split()).casefold() for _, _, name in found)
    lines = body.split("\n")
    for at, (line, level, name) in enumerate(found):
        if counts[" ".join(name.split()).casefold()] > 1 or not name:
            continue
        end = next((below for below, other, _ in found[at + 1 :] if other <= level), len(lines))
        above = text[:start] + "\n".join(lines[: line + 1])
        for how in ("append", "replace"):
            try:
                after = edit_section(text, "a.md", how, name, content)
            except SpeckitError:
                refused += 1
                continue
            assert after.startswith(above)
            assert after.endswith("\n".join(lines[end:]))
            assert after.count(content.strip()) == 1
            old = [named[1:] for named in found]
            new = [named[1:] for named in headings(after[start:])]
            assert new == (old if how == "append" else old[: at + 1] + [each[1:] for each in found if each[0] >= end])
    return refused


@pytest.mark.requirement("T4.edited")
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("around", ["", "> ", "- "])
def test_an_edit_of_a_section_changes_nothing_outside_it(block: str, around: str) -> None:
    inner = indent(block, around if around == "> " else " " * len(around), lambda _: True)
    example = around + inner[len(around) :]
    text = f"# Top\n\nAbove.\n\n{example}\n\n## Target {{#t}}\n\nOld.  \n\n{example}\n\n\n## After\n\n{example}\n \n\n"
    assert check_edits(text) == 0


@pytest.mark.requirement("T4.edited")
@pytest.mark.parametrize("block", OPEN)
def test_nothing_is_added_behind_what_is_left_open(block: str) -> None:
    text = f"# Top\n\nAbove.\n\n## Target\n\nOld.\n\n{block}\n\n## After\n\nText.\n"
    assert check_edits(text) == 2  # to either section, both of which end with the text
    with pytest.raises(SpeckitError, match="not closed"):
        edit_section(text, "a.md", "append", "", "New.")


@pytest.mark.requirement("T4.edited")
@pytest.mark.parametrize("block", OPEN)
def test_content_that_leaves_something_open_is_put_before_nothing(block: str) -> None:
    text = "# Top\n\n<!-- ANCHOR:a -->\nOld.\n<!-- /ANCHOR:a -->\n\n## Target\n\nOld.\n\n## After\n\nText.\n"
    for section in ("Target", "a"):
        with pytest.raises(SpeckitError, match="line 3 of the content opens"):
            edit_section(text, "a.md", "replace", section, f"New.\n\n{block}")
    assert edit_section(text, "a.md", "replace", "After", f"New.\n\n{block}").endswith(f"New.\n\n{block}\n")


@pytest.mark.requirement("T4.edited")
@pytest.mark.parametrize("file", DOCS, ids=lambda file: file.name)
def test_an_edit_of_a_page_changes_nothing_outside_its_section(file: Path) -> None:
    assert check_edits(file.read_text(encoding="utf-8")) == 0


@pytest.mark.requirement("T4.edited")
@pytest.mark.parametrize(
    "content",
    [
        "Plain.",
        "- a\n- b",
        "# Heading",
        "<div>\n</div>",
        "| a |\n|---|\n| b |",
        "    code",
        "> quote",
        "<!-- note -->",
        "",
    ],
)
def test_whatever_stands_between_tags_they_stay_what_they_are(content: str) -> None:
    text = "<!-- ANCHOR:a -->\nOld.\n<!-- /ANCHOR:a -->\n## Next\n\n<!-- ANCHOR:b -->\n<!-- /ANCHOR:b -->\nEnd."
    for section in "ab":
        start, end = text.index(f"ANCHOR:{section} -->") + 12, text.index(f"<!-- /ANCHOR:{section}")
        new = edit_section(text, "a.md", "replace", section, content)
        assert new.startswith(text[:start])
        assert new.endswith(text[end:])
        assert new[start : len(new) - len(text) + end].strip("\n") == content


@pytest.mark.requirement("T4.edited")
def test_a_name_that_several_sections_have_is_not_edited_without_those_above_it() -> None:
    text = "---\ntitle: x\n---\n# Log\n\n## 2.0\n\n### Added\n\na\n\n## 1.0\n\n### Added\n\nb\n"
    with pytest.raises(SpeckitError) as caught:
        edit_section(text, "a.md", "append", "Added", "c")
    [problem] = caught.value.problems
    assert (problem.code, "on lines 10, 16" in problem.message) == ("E101", True)
    assert "'Log > 1.0 > Added'" in problem.actions[0]
    assert edit_section(text, "a.md", "append", "1.0 > added", "c") == f"{text}\nc\n"


@pytest.mark.requirement("T4.edited")
@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("- <!-- ANCHOR:a -->\n  Old.\n  <!-- /ANCHOR:a -->\n", "a.md"),
        ("> <!-- ANCHOR:a -->\n> Old.\n> <!-- /ANCHOR:a -->\n", "a.md"),
        ("Words <!-- ANCHOR:a -->old<!-- /ANCHOR:a --> words.\n", "a.md"),
        ("a\n~\n\nOld.\n\nNext\n~~~~\n", "a.rst"),
    ],
)
def test_a_section_that_text_would_fall_out_of_is_not_edited(text: str, file: str) -> None:
    with refused("E101"):
        edit_section(text, file, "replace", "a", "New.")


@pytest.mark.requirement("T4.edited")
@pytest.mark.parametrize("content", ["<!-- /ANCHOR:a -->", "<!-- ANCHOR:b -->\n<!-- /ANCHOR:b -->"])
def test_content_whose_tags_would_take_other_sections_apart_is_refused(content: str) -> None:
    text = "<!-- ANCHOR:a -->\n\n## Old\n\nText.\n\n<!-- /ANCHOR:a -->\n\n<!-- ANCHOR:b -->\nb\n<!-- /ANCHOR:b -->\n"
    with pytest.raises(SpeckitError, match="how the text around it is read"):
        edit_section(text, "a.md", "replace", "a", f"One.\n\n{content}")


@pytest.mark.requirement("T4.edited")
@pytest.mark.timeout(60)  # each heading was compared with each anchor
def test_sections_are_found_in_linear_time_however_many_headings_and_anchors_there_are() -> None:
    body = "".join(f"<!-- ANCHOR:a{at} -->\nx\n<!-- /ANCHOR:a{at} -->\n\n" for at in range(2_500)) + "# h\n" * 20_000
    assert len(parts(body)) == 22_500
