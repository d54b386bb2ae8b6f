"""Bytes to text: UTF-8 with or without a byte order mark, UTF-16 with one (feature I1)."""

from __future__ import annotations

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE

from speckit_memory.errors import SpeckitError

_MARKS = ((BOM_UTF8, "utf-8"), (BOM_UTF16_LE, "utf-16-le"), (BOM_UTF16_BE, "utf-16-be"))
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def decode(data: bytes, file: str) -> str:
    """The text of a file, lines ending in "\\n" alone.

    Raises E012 with the byte offset for any other encoding and for binary files (a NUL character is never text).
    `file` only names the file in the error.
    """
    mark, encoding = next(((m, e) for m, e in _MARKS if data.startswith(m)), (b"", "utf-8"))
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        offset = len(mark) + error.start
        raise SpeckitError("E012", f"{file}: byte {offset} is not {encoding.upper()} ({error.reason})") from error
    if "\0" in text:
        offset = len(mark) + len(text[: text.index("\0")].encode(encoding))
        raise SpeckitError("E012", f"{file}: a binary file (NUL at byte {offset})")
    return clean(text)


def clean(text: str) -> str:
    """The text without a byte order mark, with every line end as "\n", and lone surrogates, which no encoding holds, as
    U+FFFD."""
    text = text.removeprefix("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
