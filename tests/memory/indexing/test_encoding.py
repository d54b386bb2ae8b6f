from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.parsing.encoding import decode

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\ufeff"))
ENCODINGS = [
    (b"", "utf-8"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
]


@pytest.mark.requirement("I1.encodings")
@given(TEXT, st.sampled_from(ENCODINGS))
def test_every_accepted_encoding_gives_the_text_back(text: str, form: tuple[bytes, str]) -> None:
    mark, encoding = form

    assert decode(mark + text.encode(encoding), "note.md") == text


@pytest.mark.requirement("I1")
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"abc\xff", "E012 note.md: byte 3 is not UTF-8 (invalid start byte)"),
        (b"\xef\xbb\xbfab\xff", "E012 note.md: byte 5 is not UTF-8 (invalid start byte)"),
        (b"\xff\xfea\0b", "E012 note.md: byte 4 is not UTF-16-LE (truncated data)"),
        ("é\0".encode(), "E012 note.md: a binary file (NUL at byte 2)"),
    ],
)
def test_other_bytes_are_refused_with_their_offset(data: bytes, message: str) -> None:
    with pytest.raises(SpeckitError) as caught:
        decode(data, "note.md")

    assert str(caught.value) == message


def test_line_ends_become_one_kind() -> None:
    assert decode(b"a\r\nb\rc\n", "note.md") == "a\nb\nc\n"
