"""Documents that are built to cost time or memory, each of about a given number of bytes."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterator
from itertools import count

Shape = Callable[[int], str]
"""Makes a document of so many bytes of UTF-8, cut at its end."""


def _filled(parts: Iterator[str], size: int) -> str:
    """Parts one after the other until they are long enough."""
    taken: list[str] = []
    length = 0
    while length < size:
        taken.append(next(parts))
        length += len(taken[-1])
    return "".join(taken)


def _over(piece: str, size: int) -> str:
    return piece * (size // len(piece.encode()) + 1)


def _nested_long_headings(size: int) -> str:
    """Six headings above one another, each long, and then passages."""
    heads = "".join(f"{'#' * level} {_over(f'level {level} ', size // 12)}\n\n" for level in range(1, 7))
    return heads + _over("A sentence of a passage stands here.\n\n", size // 2)


def _log_with_dashes(size: int) -> str:
    """Lines that a line of dashes follows are headings of Markdown."""
    line = "2026-11-22T10:00:00Z INFO request id=%d " + "path=/api/v1/items status=200 " * 30 + "\n-----\n"
    return _filled((line % number for number in count()), size)


def _log_paragraphs_with_dashes(size: int) -> str:
    """Blocks of lines over dashes: each whole block is one heading."""
    lines = "".join(f"2026-11-22T10:00:{number % 60:02} INFO worker {number} did its part\n" for number in range(2000))
    return _over(f"{lines}-----\nsome text below it\n\n", size)


def _huge_table(size: int) -> str:
    row = "| " + " | ".join(f"cell {number}" for number in range(1000)) + " |\n"
    return row + "|" + "---|" * 1000 + "\n" + _over(row, size)


def _table_of_empty_rows(size: int) -> str:
    """A wide head and rows of one cell: filled up, each row would be as wide."""
    columns = max(2, int(size**0.5))
    return "|" + "a|" * columns + "\n|" + "-|" * columns + "\n" + _over("|b\n", size)


def _nested_anchors(size: int) -> str:
    pairs = size // 60
    return "".join(f"<!-- ANCHOR:s{number} -->\n" for number in range(pairs)) + "".join(
        f"<!-- /ANCHOR:s{number} -->\n" for number in reversed(range(pairs))
    )


def _distinct_letters_only(size: int) -> str:
    letters = str.maketrans("0123456789", "abcdefghij")
    return _filled((str(number).translate(letters) + "\n" for number in count(10_000)), size)


def _zalgo(size: int) -> str:
    marks = "".join(chr(0x300 + number) for number in range(100))
    return _over(f"z{marks}a{marks}lgo ", size)


def _front_matter_of_triggers(size: int) -> str:
    lines = _filled((f"  - trigger number {number}\n" for number in count()), size - 100)
    return f"---\ntrigger_phrases:\n{lines}---\ntext\n"


def _front_matter_of_links(size: int) -> str:
    lines = _filled((f"    - folder/page-{number}.md\n" for number in count()), size - 100)
    return f"---\ncausalLinks:\n  supports:\n{lines}---\ntext\n"


def _front_matter_laughs(size: int) -> str:
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 30))
    return f"---\nl0: &l0 lol\n{levels}---\n" + _over("text\n", size - len(levels) - 40)


def _one_link_block(size: int) -> str:
    lines = _filled((f"    - page-{number}.md\n" for number in count()), size)
    return f"causalLinks:\n  supports:\n{lines}"


_MAKERS: dict[str, Shape] = {
    # Half of it one heading, half of it text that stands under it.
    "long_heading_over_many_passages": lambda size: (
        f"# {_over('heading words ', size // 2)}\n\n" + _over("A sentence of a passage stands here.\n\n", size // 2)
    ),
    "nested_long_headings": _nested_long_headings,
    "log_with_dashes": _log_with_dashes,
    "log_paragraphs_with_dashes": _log_paragraphs_with_dashes,
    "one_line": lambda size: _over("a line that never ends goes on and on ", size),
    "one_word": lambda size: "a" * size,
    "one_number": lambda size: "7" * size,
    "letters_and_digits": lambda size: _over("a1", size),
    "camel_case": lambda size: _over("CamelCase", size),
    "dotted_letters": lambda size: _over("a.b.c.d.", size),
    "dotted_words": lambda size: _filled((f"module{number}.sub_part." for number in count()), size),
    "hyphens": lambda size: "-" * size,
    "apostrophes": lambda size: _over("a'", size),
    "huge_table": _huge_table,
    "table_of_empty_rows": _table_of_empty_rows,
    "wide_tables": lambda size: _over("|" + "a|" * 5000 + "\n|" + "-|" * 5000 + "\n\n", size),
    "pipes": lambda size: "|" * size,
    "almost_tables": lambda size: _over("a|b\n", size),
    "unclosed_fence": lambda size: "```python\n" + _over("value = compute(argument)  # and so on\n", size),
    "fences_of_growing_length": lambda size: _filled(("`" * number + "\n" for number in count(3)), size),
    "fence_marks": lambda size: _over("```\n~~~\n", size),
    "unclosed_comments": lambda size: _over("<!-- ", size),
    "unclosed_anchors": lambda size: _filled((f"<!-- ANCHOR:section-{number} -->\ntext\n" for number in count()), size),
    "nested_anchors": _nested_anchors,
    "broken_anchors": lambda size: _over("<!-- ANCHOR:!! -->\n", size),
    "half_anchors": lambda size: _over("<!-- ANCHOR: x ", size),
    "open_brackets": lambda size: "[" * size,
    "open_links": lambda size: _over("[a](", size),
    "links": lambda size: _filled((f"- [title {number}](folder/page-{number}.md)\n" for number in count()), size),
    "reference_definitions": lambda size: _filled(
        (f"[ref{number}]: https://example.org/{number} 'title'\n" for number in count()), size
    ),
    "open_reference_definitions": lambda size: _over("[a]: '\n", size),
    "nested_quotations": lambda size: _over(">" * 10_000 + " deep\n", size),
    "nested_lists": lambda size: _filled(("  " * (number % 500) + "- item\n" for number in count()), size),
    "lists_in_a_line": lambda size: _over("- " * 5000 + "\n", size),
    "backticks": lambda size: _filled(("`" * number + " " for number in count(1)), size),
    "stars": lambda size: _over("**a __b ", size),
    "blank_lines": lambda size: "text\n" + "\n" * (size - 10) + "text\n",
    "blanks": lambda size: "text" + " " * (size - 10) + "text\n",
    "indented_lines": lambda size: _over(" " * 400 + "\tcode\n", size),
    "many_headings": lambda size: _over("#\n", size),
    "headings_with_text": lambda size: _filled(
        (f"{'#' * (1 + number % 6)} h{number}\nx\n" for number in count()), size
    ),
    "hashes": lambda size: "# " + "#" * size,
    "closing_hashes": lambda size: _over("# a" + " #" * 2000 + "\n", size),
    "short_paragraphs": lambda size: _over("paragraph\n\n", size),
    "tiny_paragraphs": lambda size: _over("a\n\n", size),
    "distinct_words": lambda size: _filled((f"w{number:x}q " for number in count()), size),
    "distinct_letters_only": _distinct_letters_only,
    "zalgo": _zalgo,
    # Marks in the wrong order: to normalise them is to sort them.
    "one_long_zalgo": lambda size: "a" + _over("\u0316\u0301", size),
    "cjk": lambda size: _filled((chr(0x4E00 + number * 7919 % 20_000) for number in count()), size // 3),
    "japanese": lambda size: _over("全文検索は二文字の並びで日本語を索引する。", size),
    "hangul": lambda size: _over("검색엔진은모든문서를찾습니다", size),
    "emoji_families": lambda size: _over("👨‍👩‍👧‍👦🏳️‍🌈", size),
    # Each character is eighteen in compatibility form.
    "wide_forms": lambda size: _over("\ufdfa", size),
    "windows_lines": lambda size: _over("A line of Windows.\r\n\r\n", size),
    "old_mac_lines": lambda size: _over("A line of an old Mac.\r", size),
    "strange_line_ends": lambda size: _over("one\vtwo\fthree\u2028four\u2029five\x85six\x1cseven ", size),
    "encoded_bytes": lambda size: base64.b64encode(random.Random(1).randbytes(size * 3 // 4)).decode(),
    "encoded_lines": lambda size: base64.encodebytes(random.Random(2).randbytes(size * 3 // 4)).decode(),
    "minified_script": lambda size: _filled(
        (f"function f{n}(a,b){{return a+b*{n}}};var x{n}=f{n}({n},{n + 1});" for n in count()), size
    ),
    "json_line": lambda size: (
        "[" + _filled((f'{{"id":{n},"name":"item {n}","tags":["a","b"]}},' for n in count()), size)
    ),
    "csv": lambda size: _filled(
        (f"{n},name {n},2026-11-22,{n * 17 % 1000}.{n % 100:02},active\n" for n in count()), size
    ),
    "front_matter_of_many_keys": lambda size: (
        "---\n" + _filled((f"key{number}: value {number}\n" for number in count()), size - 100) + "---\ntext\n"
    ),
    "front_matter_of_triggers": _front_matter_of_triggers,
    "front_matter_of_links": _front_matter_of_links,
    "front_matter_of_one_value": lambda size: f"---\ndescription: {'very long ' * (size // 10 - 10)}\n---\ntext\n",
    "front_matter_title": lambda size: f"---\ntitle: {'very long ' * (size // 10 - 10)}\n---\ntext\n",
    "front_matter_nested": lambda size: f"---\nkey: {'[' * (size - 40)}\n---\ntext\n",
    "front_matter_of_flows": lambda size: f"---\nkey: [{'[],' * (size // 3 - 20)}]\n---\ntext\n",
    "front_matter_laughs": _front_matter_laughs,
    "front_matter_of_anchors": lambda size: (
        "---\n" + _filled((f"k{number}: &a{number} v\n" for number in count()), size - 100) + "---\ntext\n"
    ),
    "front_matter_unclosed": lambda size: (
        "---\n" + _filled((f"key{number}: value {number}\n" for number in count()), size)
    ),
    "front_matter_same_key": lambda size: "---\n" + _over("key: value\n", size - 100) + "---\ntext\n",
    "front_matter_misspelt": lambda size: (
        "---\n" + _filled((f"titel{number}: x\n" for number in count()), size - 100) + "---\ntext\n"
    ),
    "link_blocks": lambda size: _filled(
        (f"causalLinks:\n  supports: page-{number}.md\n\n" for number in count()), size
    ),
    "empty_link_blocks": lambda size: _over("causalLinks:\n", size),
    # Each block would be read to its end, and the next begins in it.
    "long_link_blocks": lambda size: _over("  causalLinks:\n", size),
    "one_link_block": _one_link_block,
    # Small sections that no common heading puts together.
    "unrelated_sections": lambda size: _filled(
        (f"# part {number}\n## piece {number}\nx\n" for number in count()), size
    ),
    "anchored_sections": lambda size: _filled(
        (f"<!-- ANCHOR:s{number} -->\nx\n<!-- /ANCHOR:s{number} -->\n" for number in count()), size
    ),
    # A single character that makes Python hold every character in four bytes.
    "one_sign_among_letters": lambda size: "\U0001f600" + _over("plain words of a text ", size - 4),
    "stop_words": lambda size: _over("the of and ", size),
    "repeated_targets": lambda size: _over("causalLinks:\n  supports:\n" + "    - a.md\n" * 1500 + "\n", size),
    # Letters that are others when case is ignored.
    "dotless_words": lambda size: _over("dec\u0131ded \u0130mplemented re\u017fearched \u212aelvin ", size),
    "long_key_of_front_matter": lambda size: f"---\n? {'k' * (size - 40)}\n: value\n---\ntext\n",
}


def _cut(make: Shape) -> Shape:
    def cut(size: int) -> str:
        text = make(size)
        return text if text.isascii() and len(text) <= size else text.encode()[:size].decode(errors="ignore")

    return cut


SHAPES = {name: _cut(make) for name, make in _MAKERS.items()}
