"""Texts that somebody types as arguments or pipes into a command, in whatever encoding the terminal has."""

from __future__ import annotations

import locale
import sys
from typing import TypeVar

import click

from speckit_memory.errors import SpeckitError

T = TypeVar("T")


def standard_input() -> str:
    """All of standard input. Raises E012 for what is no text, and E013 for what is longer than a document may be."""
    from speckit_memory.memory.parsing.encoding import decode_typed
    from speckit_memory.memory.scanning.scanner import LARGEST_FILE

    data = sys.stdin.buffer.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise SpeckitError("E013", f"standard input has more than {LARGEST_FILE:,} bytes")
    return decode_typed(data, "standard input", (sys.stdin.encoding, locale.getencoding()))


def typed(context: click.Context, parameter: click.Parameter, value: T) -> T:
    """The value of an option as text: what the interpreter could not decode is decoded here. Raises E012."""
    if isinstance(value, tuple):
        return tuple(typed(context, parameter, each) for each in value)  # type: ignore[return-value]
    if isinstance(value, str) and not value.isascii() and any("\udc80" <= sign <= "\udcff" for sign in value):
        from speckit_memory.memory.parsing.encoding import decode_typed

        data = value.encode(sys.getfilesystemencoding(), "surrogateescape")
        return decode_typed(data, parameter.opts[0], (locale.getencoding(),))  # type: ignore[return-value]
    return value
