"""Decodes files (UTF-8 with or without a byte order mark, UTF-16 with one; feature I1) and terminal input."""

from __future__ import annotations

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, lookup
from collections.abc import Iterable
from contextlib import suppress

from speckit_memory.errors import SpeckitError

_MARKS = ((BOM_UTF8, "utf-8"), (BOM_UTF16_LE, "utf-16-le"), (BOM_UTF16_BE, "utf-16-be"))
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f]")
"""Characters no text contains; bytes decoded with the wrong legacy encoding often yield them."""
_WESTERN = frozenset({"cp1252", "iso8859-1", "iso8859-15", "cp850", "cp437", "mac-roman"})
_FOREIGN = re.compile(r"[^\x00-\x7f\u00a0\u00ab\u00bb\u2010-\u203a]{4}")
"""Four accented letters in a row, which no Western language writes: the encoding is another one."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def decode(data: bytes, file: str) -> str:
    """Decode the content of a file, with all line ends as "\\n".

    Raises E012 with the byte offset for any other encoding and for binary files (those with a NUL character).
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


def decode_typed(data: bytes, name: str, encodings: Iterable[str]) -> str:
    """Decode typed or piped input as `decode` does, else with the first of the terminal's `encodings` that fits.

    Raises E012 if none fits. `name` only names the input in the error.
    """
    tried = [each for each in dict.fromkeys(map(_canonical, encodings)) if each not in ("", "utf-8", "ascii")]
    try:
        return decode(data, name)
    except SpeckitError as error:
        for encoding in () if data.startswith(tuple(mark for mark, _ in _MARKS)) or b"\0" in data else tried:
            with suppress(UnicodeDecodeError):
                text = data.decode(encoding)
                if not _CONTROL.search(text) and not (encoding in _WESTERN and _FOREIGN.search(text)):
                    return clean(text)
        [problem] = error.problems
        also = f", nor is it {' or '.join(tried)}, the encoding of the terminal" if tried else ""
        message = f"{problem.message}{also}; nothing was stored"
        actions = (
            "pipe it through `iconv -t UTF-8`",
            "name its encoding in PYTHONIOENCODING",
            "save it as a UTF-8 file",
        )
        raise SpeckitError("E012", message, actions=actions) from error


def _canonical(encoding: str) -> str:
    try:
        return lookup(encoding).name
    except LookupError:
        return ""


def clean(text: str) -> str:
    """Return the text without a byte order mark, with every line end as "\n" and lone surrogates, which cannot be
    encoded, as U+FFFD."""
    text = text.removeprefix("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
