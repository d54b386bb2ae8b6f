from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.parsing.markdown import anchors
from speckit_memory.memory.parsing.markdown.chunks import ChunkSizes, split
from speckit_memory.memory.store.records import Chunk

SMALL = ChunkSizes(whole_document=50, target=80, minimum=40, maximum=120, whole_block=300)
LINES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "",
                "# One",
                "## Two",
                "### Three",
                "```",
                "~~~",
                "| a | b |",
                "|---|---|",
                "- item",
                "> quote",
                "===",
                "---",
                "<!-- ANCHOR:a -->",
                "<!-- /ANCHOR:a -->",
                "    code",
                "<div>",
                "word " * 30,
                "x" * 150,
                "ends. Begins. " * 9,
            ]
        ),
        st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"]), max_size=60),
    ),
    max_size=30,
).map("\n".join)


def words(text: str) -> str:
    return "".join(text.split())


@pytest.mark.requirement("I5")
@given(LINES)
def test_the_passages_are_the_text_cut_in_order(text: str) -> None:
    sections, _ = anchors.find(text, "note.md")

    passages = list(split(text, sections, SMALL))

    assert words("".join(passage.text for passage in passages)) == words(text)
    lines = text.split("\n")
    position = 0
    for passage in passages:
        assert passage.text.strip()
        position = text.index(passage.text, position)
        assert passage.first_line == text.count("\n", 0, position) + 1
        position += len(passage.text)
        assert passage.last_line == text.count("\n", 0, position - 1) + 1
        assert passage.last_line <= len(lines)


@pytest.mark.requirement("I5")
def test_a_short_document_is_one_passage() -> None:
    assert list(split("# A\n\ntext\n", first_line=4)) == [Chunk("# A\n\ntext", "", "", 4, 6)]


@pytest.mark.requirement("I5.borders")
def test_headings_are_borders_and_name_the_path() -> None:
    body = "sentence " * 9
    text = f"# Design\n\n## Fusion\n\n{body}\n\n## `Rerank`\n\n{body}\n"

    assert [(chunk.heading, chunk.first_line, chunk.last_line) for chunk in split(text, (), SMALL)] == [
        ("Design > Fusion", 1, 5),
        ("Design > Rerank", 7, 9),
    ]


@pytest.mark.requirement("I5.borders")
def test_anchors_are_borders_and_a_tag_leads_in_its_section() -> None:
    body = "sentence " * 6
    text = f"{body}\n\n<!-- ANCHOR:why -->\n## Why\n\n{body}\n<!-- /ANCHOR:why -->\n\n{body}\n"
    sections, _ = anchors.find(text, "note.md")

    assert [
        (chunk.anchor, chunk.heading, chunk.first_line, chunk.last_line) for chunk in split(text, sections, SMALL)
    ] == [
        ("", "", 1, 1),
        ("why", "Why", 3, 7),
        ("", "Why", 9, 9),
    ]


@pytest.mark.requirement("I5.whole")
@pytest.mark.parametrize(
    "block",
    ["```python\n" + "value = 1\n\n# comment\n" * 8 + "```", "| a | b |\n|---|---|\n" + "| cell | cell |\n" * 9],
    ids=["code", "table"],
)
def test_code_and_tables_stay_whole(block: str) -> None:
    text = "Before, a paragraph of its own.\n\n" + block.rstrip() + "\n\nAfter, another paragraph.\n"

    assert len(block) > SMALL.maximum
    assert any(block.rstrip() in chunk.text for chunk in split(text, (), SMALL))


@pytest.mark.requirement("I5")
def test_a_paragraph_is_cut_only_when_it_alone_is_too_long_and_then_at_sentences() -> None:
    fits = "One two three four five six. " * 3
    long = "Alpha beta gamma delta epsilon zeta. " * 9

    passages = [chunk.text for chunk in split(f"{fits}\n\n{long}\n", (), SMALL)]

    assert passages[0] == fits.strip()
    assert len(passages) > 3
    assert all(passage.endswith("zeta.") for passage in passages[1:])


@pytest.mark.requirement("I5")
def test_small_neighbours_under_one_heading_are_put_together() -> None:
    text = "# All\n\n## A\n\nshort\n\n## B\n\nshort\n\n# Other\n\n" + "sentence " * 8

    assert [chunk.heading for chunk in split(text, (), SMALL)] == ["All", "Other"]


def test_chinese_text_is_cut_at_its_own_full_stops() -> None:
    passages = list(split("数据库索引很重要。" * 20, (), SMALL))

    assert len(passages) > 1
    assert all(passage.text.endswith("。") for passage in passages)


@pytest.mark.parametrize(
    "text",
    [
        "> " * 200_000,
        "- " * 200_000,
        "[" * 400_000,
        "x" * 400_000,
        "\n" * 400_000,
        "<!-- ANCHOR:a -->\n" * 20_000,
        "".join(f"<!-- ANCHOR:a{n} -->\n" for n in range(15_000))
        + "".join(f"<!-- /ANCHOR:a{n} -->\n" for n in reversed(range(15_000))),
    ],
    ids=["quotes", "lists", "brackets", "word", "lines", "anchors", "nested anchors"],
)
def test_hostile_texts_of_hundreds_of_kilobytes_are_cut(text: str) -> None:
    sections, _ = anchors.find(text, "note.md")

    assert words("".join(chunk.text for chunk in split(text, sections))) == words(text)


def test_sizes_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="ascending"):
        ChunkSizes(target=10, minimum=20)
