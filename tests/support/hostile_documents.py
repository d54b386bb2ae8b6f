"""Documents that are built to cost time or memory, each of about a given number of bytes."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterator
from itertools import count

Shape = Callable[[int], str]
"""Makes a document of so many bytes of UTF-8, cut at its end."""

SHAPES: dict[str, Shape] = {}


def _shape(make: Callable[[int], str]) -> Shape:
    def cut(size: int) -> str:
        text = make(size)
        return text if text.isascii() and len(text) <= size else text.encode()[:size].decode(errors="ignore")

    SHAPES[make.__name__] = cut
    return cut


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


@_shape
def long_heading_over_many_passages(size: int) -> str:
    """Half of it one heading, half of it text that stands under it."""
    return f"# {_over('heading words ', size // 2)}\n\n" + _over("A sentence of a passage stands here.\n\n", size // 2)


@_shape
def nested_long_headings(size: int) -> str:
    """Six headings above one another, each long, and then passages."""
    heads = "".join(f"{'#' * level} {_over(f'level {level} ', size // 12)}\n\n" for level in range(1, 7))
    return heads + _over("A sentence of a passage stands here.\n\n", size // 2)


@_shape
def log_with_dashes(size: int) -> str:
    """Lines that a line of dashes follows are headings of Markdown."""
    line = "2026-11-22T10:00:00Z INFO request id=%d " + "path=/api/v1/items status=200 " * 30 + "\n-----\n"
    return _filled((line % number for number in count()), size)


@_shape
def log_paragraphs_with_dashes(size: int) -> str:
    """Blocks of lines over dashes: each whole block is one heading."""
    lines = "".join(f"2026-11-22T10:00:{number % 60:02} INFO worker {number} did its part\n" for number in range(2000))
    return _over(f"{lines}-----\nsome text below it\n\n", size)


@_shape
def one_line(size: int) -> str:
    return _over("a line that never ends goes on and on ", size)


@_shape
def one_word(size: int) -> str:
    return "a" * size


@_shape
def one_number(size: int) -> str:
    return "7" * size


@_shape
def letters_and_digits(size: int) -> str:
    return _over("a1", size)


@_shape
def camel_case(size: int) -> str:
    return _over("CamelCase", size)


@_shape
def dotted_letters(size: int) -> str:
    return _over("a.b.c.d.", size)


@_shape
def dotted_words(size: int) -> str:
    return _filled((f"module{number}.sub_part." for number in count()), size)


@_shape
def hyphens(size: int) -> str:
    return "-" * size


@_shape
def apostrophes(size: int) -> str:
    return _over("a'", size)


@_shape
def huge_table(size: int) -> str:
    row = "| " + " | ".join(f"cell {number}" for number in range(1000)) + " |\n"
    return row + "|" + "---|" * 1000 + "\n" + _over(row, size)


@_shape
def table_of_empty_rows(size: int) -> str:
    """A wide head and rows of one cell: filled up, each row would be as wide."""
    columns = max(2, int(size**0.5))
    return "|" + "a|" * columns + "\n|" + "-|" * columns + "\n" + _over("|b\n", size)


@_shape
def wide_tables(size: int) -> str:
    return _over("|" + "a|" * 5000 + "\n|" + "-|" * 5000 + "\n\n", size)


@_shape
def pipes(size: int) -> str:
    return "|" * size


@_shape
def almost_tables(size: int) -> str:
    return _over("a|b\n", size)


@_shape
def unclosed_fence(size: int) -> str:
    return "```python\n" + _over("value = compute(argument)  # and so on\n", size)


@_shape
def fences_of_growing_length(size: int) -> str:
    return _filled(("`" * number + "\n" for number in count(3)), size)


@_shape
def fence_marks(size: int) -> str:
    return _over("```\n~~~\n", size)


@_shape
def unclosed_comments(size: int) -> str:
    return _over("<!-- ", size)


@_shape
def unclosed_anchors(size: int) -> str:
    return _filled((f"<!-- ANCHOR:section-{number} -->\ntext\n" for number in count()), size)


@_shape
def nested_anchors(size: int) -> str:
    pairs = size // 60
    return "".join(f"<!-- ANCHOR:s{number} -->\n" for number in range(pairs)) + "".join(
        f"<!-- /ANCHOR:s{number} -->\n" for number in reversed(range(pairs))
    )


@_shape
def broken_anchors(size: int) -> str:
    return _over("<!-- ANCHOR:!! -->\n", size)


@_shape
def half_anchors(size: int) -> str:
    return _over("<!-- ANCHOR: x ", size)


@_shape
def open_brackets(size: int) -> str:
    return "[" * size


@_shape
def open_links(size: int) -> str:
    return _over("[a](", size)


@_shape
def links(size: int) -> str:
    return _filled((f"- [title {number}](folder/page-{number}.md)\n" for number in count()), size)


@_shape
def reference_definitions(size: int) -> str:
    return _filled((f"[ref{number}]: https://example.org/{number} 'title'\n" for number in count()), size)


@_shape
def open_reference_definitions(size: int) -> str:
    return _over("[a]: '\n", size)


@_shape
def nested_quotations(size: int) -> str:
    return _over(">" * 10_000 + " deep\n", size)


@_shape
def nested_lists(size: int) -> str:
    return _filled(("  " * (number % 500) + "- item\n" for number in count()), size)


@_shape
def lists_in_a_line(size: int) -> str:
    return _over("- " * 5000 + "\n", size)


@_shape
def backticks(size: int) -> str:
    return _filled(("`" * number + " " for number in count(1)), size)


@_shape
def stars(size: int) -> str:
    return _over("**a __b ", size)


@_shape
def blank_lines(size: int) -> str:
    return "text\n" + "\n" * (size - 10) + "text\n"


@_shape
def blanks(size: int) -> str:
    return "text" + " " * (size - 10) + "text\n"


@_shape
def indented_lines(size: int) -> str:
    return _over(" " * 400 + "\tcode\n", size)


@_shape
def many_headings(size: int) -> str:
    return _over("#\n", size)


@_shape
def headings_with_text(size: int) -> str:
    return _filled((f"{'#' * (1 + number % 6)} h{number}\nx\n" for number in count()), size)


@_shape
def hashes(size: int) -> str:
    return "# " + "#" * size


@_shape
def closing_hashes(size: int) -> str:
    return _over("# a" + " #" * 2000 + "\n", size)


@_shape
def short_paragraphs(size: int) -> str:
    return _over("paragraph\n\n", size)


@_shape
def tiny_paragraphs(size: int) -> str:
    return _over("a\n\n", size)


@_shape
def distinct_words(size: int) -> str:
    return _filled((f"w{number:x}q " for number in count()), size)


@_shape
def distinct_letters_only(size: int) -> str:
    letters = str.maketrans("0123456789", "abcdefghij")
    return _filled((str(number).translate(letters) + "\n" for number in count(10_000)), size)


@_shape
def zalgo(size: int) -> str:
    marks = "".join(chr(0x300 + number) for number in range(100))
    return _over(f"z{marks}a{marks}lgo ", size)


@_shape
def one_long_zalgo(size: int) -> str:
    """Marks in the wrong order: to normalise them is to sort them."""
    return "a" + _over("\u0316\u0301", size)


@_shape
def cjk(size: int) -> str:
    return _filled((chr(0x4E00 + number * 7919 % 20_000) for number in count()), size // 3)


@_shape
def japanese(size: int) -> str:
    return _over("全文検索は二文字の並びで日本語を索引する。", size)


@_shape
def hangul(size: int) -> str:
    return _over("검색엔진은모든문서를찾습니다", size)


@_shape
def emoji_families(size: int) -> str:
    return _over("👨‍👩‍👧‍👦🏳️‍🌈", size)


@_shape
def wide_forms(size: int) -> str:
    """Each character is eighteen in compatibility form."""
    return _over("\ufdfa", size)


@_shape
def windows_lines(size: int) -> str:
    return _over("A line of Windows.\r\n\r\n", size)


@_shape
def old_mac_lines(size: int) -> str:
    return _over("A line of an old Mac.\r", size)


@_shape
def strange_line_ends(size: int) -> str:
    return _over("one\vtwo\fthree\u2028four\u2029five\x85six\x1cseven ", size)


@_shape
def encoded_bytes(size: int) -> str:
    return base64.b64encode(random.Random(1).randbytes(size * 3 // 4)).decode()


@_shape
def encoded_lines(size: int) -> str:
    return base64.encodebytes(random.Random(2).randbytes(size * 3 // 4)).decode()


@_shape
def minified_script(size: int) -> str:
    return _filled((f"function f{n}(a,b){{return a+b*{n}}};var x{n}=f{n}({n},{n + 1});" for n in count()), size)


@_shape
def json_line(size: int) -> str:
    return "[" + _filled((f'{{"id":{n},"name":"item {n}","tags":["a","b"]}},' for n in count()), size)


@_shape
def csv(size: int) -> str:
    return _filled((f"{n},name {n},2026-11-22,{n * 17 % 1000}.{n % 100:02},active\n" for n in count()), size)


@_shape
def front_matter_of_many_keys(size: int) -> str:
    return "---\n" + _filled((f"key{number}: value {number}\n" for number in count()), size - 100) + "---\ntext\n"


@_shape
def front_matter_of_triggers(size: int) -> str:
    lines = _filled((f"  - trigger number {number}\n" for number in count()), size - 100)
    return f"---\ntrigger_phrases:\n{lines}---\ntext\n"


@_shape
def front_matter_of_links(size: int) -> str:
    lines = _filled((f"    - folder/page-{number}.md\n" for number in count()), size - 100)
    return f"---\ncausalLinks:\n  supports:\n{lines}---\ntext\n"


@_shape
def front_matter_of_one_value(size: int) -> str:
    return f"---\ndescription: {'very long ' * (size // 10 - 10)}\n---\ntext\n"


@_shape
def front_matter_title(size: int) -> str:
    return f"---\ntitle: {'very long ' * (size // 10 - 10)}\n---\ntext\n"


@_shape
def front_matter_nested(size: int) -> str:
    return f"---\nkey: {'[' * (size - 40)}\n---\ntext\n"


@_shape
def front_matter_of_flows(size: int) -> str:
    return f"---\nkey: [{'[],' * (size // 3 - 20)}]\n---\ntext\n"


@_shape
def front_matter_laughs(size: int) -> str:
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 30))
    return f"---\nl0: &l0 lol\n{levels}---\n" + _over("text\n", size - len(levels) - 40)


@_shape
def front_matter_of_anchors(size: int) -> str:
    return "---\n" + _filled((f"k{number}: &a{number} v\n" for number in count()), size - 100) + "---\ntext\n"


@_shape
def front_matter_unclosed(size: int) -> str:
    return "---\n" + _filled((f"key{number}: value {number}\n" for number in count()), size)


@_shape
def front_matter_same_key(size: int) -> str:
    return "---\n" + _over("key: value\n", size - 100) + "---\ntext\n"


@_shape
def front_matter_misspelt(size: int) -> str:
    return "---\n" + _filled((f"titel{number}: x\n" for number in count()), size - 100) + "---\ntext\n"


@_shape
def link_blocks(size: int) -> str:
    return _filled((f"causalLinks:\n  supports: page-{number}.md\n\n" for number in count()), size)


@_shape
def empty_link_blocks(size: int) -> str:
    return _over("causalLinks:\n", size)


@_shape
def long_link_blocks(size: int) -> str:
    """Each block would be read to its end, and the next begins in it."""
    return _over("  causalLinks:\n", size)


@_shape
def one_link_block(size: int) -> str:
    lines = _filled((f"    - page-{number}.md\n" for number in count()), size)
    return f"causalLinks:\n  supports:\n{lines}"


@_shape
def unrelated_sections(size: int) -> str:
    """Small sections that no common heading puts together."""
    return _filled((f"# part {number}\n## piece {number}\nx\n" for number in count()), size)


@_shape
def anchored_sections(size: int) -> str:
    return _filled((f"<!-- ANCHOR:s{number} -->\nx\n<!-- /ANCHOR:s{number} -->\n" for number in count()), size)


@_shape
def one_sign_among_letters(size: int) -> str:
    """A single character that makes Python hold every character in four bytes."""
    return "\U0001f600" + _over("plain words of a text ", size - 4)


@_shape
def stop_words(size: int) -> str:
    return _over("the of and ", size)


@_shape
def repeated_targets(size: int) -> str:
    return _over("causalLinks:\n  supports:\n" + "    - a.md\n" * 1500 + "\n", size)


@_shape
def dotless_words(size: int) -> str:
    """Letters that are others when case is ignored."""
    return _over("dec\u0131ded \u0130mplemented re\u017fearched \u212aelvin ", size)


@_shape
def long_key_of_front_matter(size: int) -> str:
    return f"---\n? {'k' * (size - 40)}\n: value\n---\ntext\n"
