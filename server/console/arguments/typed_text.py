"""Decodes text from arguments and standard input, in the encoding of the terminal."""

from __future__ import annotations

import locale
import sys
from typing import TypeVar

import click

from speckit_memory.errors import SpeckitError

T = TypeVar("T")


def standard_input() -> str:
    """Reads all of standard input. Raises E012 if it is not text, E013 if it is longer than a document may be."""
    from speckit_memory.memory.parsing.encoding import decode_typed
    from speckit_memory.memory.scanning.scanner import LARGEST_FILE

    data = sys.stdin.buffer.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise SpeckitError("E013", f"standard input has more than {LARGEST_FILE:,} bytes")
    return decode_typed(data, "standard input", (sys.stdin.encoding, locale.getencoding()))


def decode_option(context: click.Context, parameter: click.Parameter, value: T) -> T:
    """Option callback that decodes bytes the interpreter could not decode. Raises E012."""
    if isinstance(value, tuple):
        return tuple(decode_option(context, parameter, each) for each in value)  # type: ignore[return-value]
    # U+DC80 to U+DCFF are the interpreter's surrogates for undecodable bytes (PEP 383)
    if isinstance(value, str) and not value.isascii() and any("\udc80" <= sign <= "\udcff" for sign in value):
        from speckit_memory.memory.parsing.encoding import decode_typed

        data = value.encode(sys.getfilesystemencoding(), "surrogateescape")
        return decode_typed(data, parameter.opts[0], (locale.getencoding(),))  # type: ignore[return-value]
    return value
