"""Queries as long as a query may be, in the shapes that make simple methods slow: by kind of sign, by repetition, by
number of different words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

LENGTH = 10_000
"""Characters of the longest query that is accepted."""

Words = Sequence[str]
"""Words that the store knows; 2,000 or more."""


def _filled(unit: str) -> Callable[[Words], str]:
    """The unit again and again, and a letter at the end, without which some were no query."""
    return lambda _: (unit * LENGTH)[: LENGTH - 1] + "a"


def _joined(make: Callable[[Words], Iterable[str]], separator: str = " ", end: str = "") -> Callable[[Words], str]:
    """Items as many as there is room for."""

    def text(words: Words) -> str:
        kept, room = [], LENGTH - len(end)
        for item in make(words):
            room -= len(item) + len(separator)
            if room < 0:
                break
            kept.append(item)
        return separator.join(kept) + end

    return text


SHAPES: dict[str, Callable[[Words], str]] = {
    # one word
    "one word of letters": _filled("qwertzuiop"),
    "one letter": _filled("a"),
    "digits": _filled("1234567890"),
    "case changing with every letter": _filled("aB"),
    "camel case": _filled("FooBar"),
    "letters and digits in turns": _filled("a1"),
    "letters with marks": _filled("é"),
    "letters that fold into two": _filled("ß"),
    "letters that unfold into eighteen": _filled("ﷺ"),
    "full-width letters": _filled("ａＢ"),
    "one letter under a thousand marks": lambda _: "a" + "\u0301" * (LENGTH - 1),
    "zalgo": _filled("a" + "".join(map(chr, range(0x300, 0x340)))),
    "encoded data": _filled("aGVsbG8gd29ybGQ"),
    # joints
    "dots": _filled("a.b.c."),
    "hyphens": _filled("a-"),
    "underscores": _filled("a_b_"),
    "apostrophes": _filled("a'"),
    "colons": _filled("a::b::"),
    "known words with dots": _joined(lambda words: words, "."),
    "known words with slashes": _joined(lambda words: words, "/"),
    "a version number of thousands": _filled("1."),
    "an address": _joined(lambda words: ("https:/", *words), "/"),
    "an address with parameters": _joined(lambda words: (f"{a}={b}" for a, b in pairwise(words)), "&"),
    # signs
    "backslashes": _filled("\\"),
    "open brackets": _filled("("),
    "nested quotes": _filled('"'),
    "quotes and signs": _filled(' "!'),
    "blanks": _filled(" "),
    "NUL": _filled("\0"),
    "hash signs": _filled("#"),
    "dashes": _filled("-"),
    "families of emoji": _filled("👨\u200d👩\u200d👧\u200d👦"),
    "JSON": _filled('{"a":[1,2],'),
    "lines": _filled("a\n"),
    # many words
    "one word again and again": lambda words: ((words[0] + " ") * LENGTH)[:LENGTH],
    "everyday words": _filled("the and of "),
    "known words": _joined(lambda words: words),
    "different letters": _joined(lambda _: filter(str.isalpha, map(chr, range(0xC0, 0x3000)))),
    "different numbers": _joined(lambda _: map(str, range(LENGTH))),
    "Chinese characters": lambda _: "".join(map(chr, range(0x4E00, 0x4E00 + LENGTH))),
    "Chinese characters again and again": lambda _: "".join(map(chr, range(0x4E00, 0x4E00 + 500))) * (LENGTH // 500),
    "references": _joined(lambda _: (f"REQ-{number:03d}" for number in range(LENGTH))),
    "issues": _joined(lambda _: (f"#{number}" for number in range(LENGTH))),
    "options": _joined(lambda words: (f"--{word}" for word in words)),
    "identifiers": _joined(lambda words: (f"{a}_{b}1" for a, b in pairwise(words))),
    "misspelt words": _joined(lambda words: (f"{word[:-1]}zx" for word in words)),
    "twenty misspelt long words": lambda words: " ".join(f"{a}zzq{b}"[:31] for a, b in pairwise(words[:21])),
    # marks
    "excluded words": _joined(lambda words: (f"-{word}" for word in words), end=" fox"),
    "quoted phrases": _joined(lambda words: (f'"{a} {b}"' for a, b in pairwise(words))),
    "one quoted phrase": lambda words: '"' + _joined(lambda _: words)(words)[: LENGTH - 2] + '"',
    "a quoted path": lambda words: '"' + _joined(lambda _: words, ".")(words)[: LENGTH - 2] + '"',
    "an excluded word that ends in dots": lambda _: "-a" + "." * (LENGTH - 7) + "x fox",
    # what understanding steps look for
    "words of intents": _filled("why is make move find chose is are leak "),
    "the beginning of a question": _filled("why is "),
    "the beginning of an order": _filled("move "),
    "a secret that leaks": _filled("leakleak "),
    "trigger phrases": lambda words: ((f"{words[0]} {words[1]}! ") * LENGTH)[:LENGTH],
}
