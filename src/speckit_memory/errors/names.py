"""Makes names displayable: a file may have a name that is not valid Unicode."""

from __future__ import annotations

import re
from typing import Any

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SPELLED = re.compile(r"\\x([89a-f][0-9a-f])")
_BYTES = range(0xDC80, 0xDD00)
"""The surrogates by which Python represents bytes of a name that are not UTF-8."""


def displayable_name(text: str) -> str:
    """The text without lone surrogates, which no encoding can represent: undecodable bytes become `\\xff`."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return _SURROGATE.sub(_spelled, text)


def original_name(text: str) -> str:
    """The original name, given its `displayable_name` form."""
    return _SPELLED.sub(lambda byte: chr(0xDC00 + int(byte[1], 16)), text)


def sendable(document: Any) -> Any:
    """A document of plain data with each text and key as `displayable_name`, so that any client can read it."""
    if isinstance(document, str):
        return displayable_name(document)
    if isinstance(document, dict):
        return {sendable(name): sendable(value) for name, value in document.items()}
    if isinstance(document, list | tuple):
        return [sendable(value) for value in document]
    return document


def _spelled(sign: re.Match[str]) -> str:
    code = ord(sign[0])
    return f"\\x{code - 0xDC00:02x}" if code in _BYTES else f"\\u{code:04x}"
