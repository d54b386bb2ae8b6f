"""Names as they can be shown: a file may have one that no text can hold."""

from __future__ import annotations

import re
from typing import Any

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SPELLED = re.compile(r"\\x([89a-f][0-9a-f])")
_BYTES = range(0xDC80, 0xDD00)
"""How Python keeps the bytes of a name that are not UTF-8."""


def shown(text: str) -> str:
    """Text without lone surrogates, which no encoding holds: bytes of a name that are not UTF-8 stand as `\\xff`."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return _SURROGATE.sub(_spelled, text)


def named(text: str) -> str:
    """The name that was `shown` so."""
    return _SPELLED.sub(lambda byte: chr(0xDC00 + int(byte[1], 16)), text)


def sendable(document: Any) -> Any:
    """A document of plain data, each text and each key of it as `shown`: only then can any client read it."""
    if isinstance(document, str):
        return shown(document)
    if isinstance(document, dict):
        return {sendable(name): sendable(value) for name, value in document.items()}
    if isinstance(document, list | tuple):
        return [sendable(value) for value in document]
    return document


def _spelled(sign: re.Match[str]) -> str:
    code = ord(sign[0])
    return f"\\x{code - 0xDC00:02x}" if code in _BYTES else f"\\u{code:04x}"
