"""reStructuredText as Markdown: what becomes of each construct, and what no text can do."""

from __future__ import annotations

from textwrap import dedent

import pytest
from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser
from docutils.utils import new_document
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.parsing.formats import restructuredtext
from speckit_memory.memory.parsing.formats.outline import outline
from speckit_memory.memory.parsing.limits import LONGEST_OUTLINED
from speckit_memory.memory.parsing.markdown import anchors
from speckit_memory.memory.parsing.markdown.chunks import ChunkSizes, split
from speckit_memory.memory.parsing.markdown.markdown import blocks
from speckit_memory.memory.parsing.markdown.title import choose

SMALL = ChunkSizes(whole_document=1, target=100, minimum=10, maximum=200, whole_block=300)
PAGE = dedent(
    """\
    =========
    The store
    =========

    One file.

    .. _locking:

    Locks and leases
    ================

    A lease is taken::

        BEGIN IMMEDIATE;

        COMMIT;

    .. code-block:: python

       def lease():
           return 1

    Who may:

    +-----+-----+
    | how | who |
    +-----+-----+

    1. First
    2. Second

    1. Numbered
    -----------

    # no heading here

    Recovery
    ========

    After a crash.
    """
)


def read(text: str) -> str:
    return restructuredtext.read(text).text


@pytest.mark.requirement("I1.formats")
def test_titles_code_and_tables_become_those_of_markdown_in_their_lines() -> None:
    text = read(PAGE)

    assert text.count("\n") == PAGE.count("\n")
    found = [(block.kind, block.level, block.heading) for block in blocks(text) if block.kind != "text"]
    assert found == [
        ("heading", 1, "The store"),
        ("heading", 2, "Locks and leases"),
        ("whole", 0, ""),
        ("whole", 0, ""),
        ("whole", 0, ""),
        ("heading", 3, "1. Numbered"),
        ("heading", 2, "Recovery"),
    ]
    assert choose("", text, "docs/store.rst") == "The store"
    for number, (before, after) in enumerate(zip(PAGE.split("\n"), text.split("\n"), strict=True)):
        words = before.strip("=-+ .")
        if not words.startswith("_"):
            assert words.split(" ")[-1] in after, (number, before, after)


@pytest.mark.requirement("I1.formats")
def test_a_label_before_a_title_names_its_section() -> None:
    text = read(PAGE)
    [section], problems = anchors.find(text, "store.rst")

    assert problems == []
    assert section.id == "locking"
    assert section.content(text).startswith("## Locks and leases")
    assert section.content(text).rstrip().endswith("# no heading here")
    chunks = [chunk for chunk in split(text, [section], SMALL) if chunk.anchor]
    assert {chunk.anchor for chunk in chunks} == {"locking"}
    assert "Recovery" not in " ".join(chunk.text for chunk in chunks)


def test_labels_of_nested_and_following_sections_never_cross() -> None:
    text = read(".. _a:\n\nA\n=\n\n.. _b:\n.. _c d:\n\nB\n-\n\nx::\n\n  code\n\n.. _e:\n\nE\n=\n\n  end::\n\n  y\n")
    sections, problems = anchors.find(text, "x.rst")

    assert problems == []
    assert [section.id for section in sections] == ["a", "b", "c-d", "e"]
    assert "code" in sections[2].content(text)
    assert "end" not in sections[0].content(text)


@pytest.mark.requirement("I1.nothing_outside")
@pytest.mark.parametrize(
    "directive",
    [
        ".. include:: /etc/passwd",
        ".. raw:: html\n   :file: /etc/passwd",
        ".. raw:: html\n   :url: http://127.0.0.1:9/",
        ".. csv-table::\n   :file: /etc/passwd",
        ".. literalinclude:: /etc/passwd\n   :language: text",
        ".. figure:: /etc/passwd\n   :figwidth: image",
        ".. |x| replace:: y",
    ],
)
def test_no_directive_runs(directive: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.open", lambda *_, **__: pytest.fail("a file was opened"))
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: pytest.fail("something was fetched"))

    text = read(f"Title\n=====\n\n{directive}\n\n|x| end.\n")

    assert "root:" not in text
    assert "|x| end." in text


@pytest.mark.parametrize(
    "unit",
    [
        "Title\n=====\n\n", "+--+\nx\n", "==  ==\n", "- a\n", "a\n b\n", ".. _a:\n\nT\n-\n\n", "a::\n\n b\n\n",
        "====\n",         "a::\n\n> b\n\n", "..\n", ">>> a\n", "mmmm. a\n", "    ", "\t", "`a`_ ", "\\", "|",
        "__ a\n", ":a: b\n", "\x1c",
        "".join(" " * depth + "- a\n" for depth in range(300)),
    ],
)  # fmt: skip
def test_no_text_breaks_the_reader_or_loses_a_line(unit: str) -> None:
    text = unit * (30_000 // len(unit))
    found = restructuredtext.read(text)

    assert found.text.count("\n") - text.count("\n") in (0, 1)
    assert anchors.find(found.text, "x")[1] == []


def test_what_is_behind_the_limit_stays_as_it_is() -> None:
    text = "A\n=\n\n" + "word\n" * (LONGEST_OUTLINED // 5) + "\nB\n=\n"
    found = restructuredtext.read(text)

    assert found.limit == "outline"
    assert 90_000 < found.limit_line < text.count("\n")
    assert found.text.startswith("# A\n")
    assert found.text.endswith("\nB\n=\n")


def test_tags_that_a_text_speaks_of_hide_nothing() -> None:
    page = restructuredtext.read(
        "Top\n===\n\n<!-- begins a comment,\n\n<pre> shows code:\n\nAfter it\n--------\n\nText.\n"
    )
    assert [block.heading for block in blocks(page.text) if block.kind == "heading"] == ["Top", "After it"]


def test_tags_that_end_in_their_line_stay_as_they_are() -> None:
    text = "<https://example.com> tells more.\n\n<!-- ANCHOR:rules -->\nText.\n<!-- /ANCHOR:rules -->\n"
    page = restructuredtext.read(text)
    assert page.text == text
    assert [section.id for section in anchors.find(page.text, "")[0]] == ["rules"]


def of_docutils(text: str) -> tuple[list[tuple[str, int]], list[str]]:
    """Titles with their levels and the literal blocks outside of other blocks, as docutils' own parser finds them."""
    settings = get_default_settings(Parser)
    settings.report_level = 5  # says nothing about faults
    document = new_document("document", settings)
    Parser().parse(text, document)
    titles: list[tuple[str, int]] = []
    literal: list[str] = []

    def walk(node: nodes.Element, level: int) -> None:
        for part in node.children:
            if isinstance(part, nodes.section):
                titles.append((part[0].astext(), level))
                walk(part, level + 1)
            elif isinstance(part, nodes.literal_block | nodes.doctest_block):
                literal.append(part.astext())

    walk(document, 1)
    return titles, literal


BLOCKS = (
    "Title\n=====", "日本\n====", "Short title\n--", "Longer title\n=====", "=====\n Over\n=====",
    "====\nToo long for it\n====", "====\nNot\n===", "----------", "--", "Text\nof two lines",
    "Text::\n\n   code\n\n     more", "Text::\n\ntext", "- item\n\n  Not one\n  =======", "* item\n- - -",
    "1. First\n2. Second", "1. Numbered\n===========", "(a) x", ":name: value\n   more", "-f FILE  option",
    "--all  option", ">>> call()\n1", "| line\n| block", "   quoted\n   ======", "term\n   definition\n   ====",
    ".. comment\n   Title\n   =====", ".. _label:", "..\n\n   Title\n   =====", "__ anonymous", "..  Title\n=====",
    "+-----+\n| a   |\n+=====+\n| b   |\n+-----+", "=== ===\na   b\n=== ===\nc   d\n=== ===",
)  # fmt: skip


# with two kinds of rules no title skips a level, which docutils refuses and we accept
@given(blocks=st.lists(st.sampled_from(BLOCKS), max_size=8))
def test_titles_and_literal_blocks_are_those_of_docutils(blocks: list[str]) -> None:
    text = "\n\n".join(blocks) + "\n"
    lines = text.split("\n")
    found = outline(lines)
    titles, literal = of_docutils(text)
    assert [(title.text, title.level) for title in found.titles] == titles
    kept = [dedent("\n".join(lines[first : last + 1])) for first, last, _ in found.blocks]
    assert [block for block in kept if not block.startswith(("+--", "==="))] == literal
