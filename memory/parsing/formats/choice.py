"""Chooses the reader that converts a document to Markdown (feature I1)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from speckit_memory.config.workspace.formats import FORMATS
from speckit_memory.memory.parsing.formats import html, restructuredtext
from speckit_memory.memory.parsing.formats.readable import Readable

_READERS: dict[str, Callable[[str], Readable]] = {"rst": restructuredtext.read, "html": html.read}
_FORMAT_OF = {suffix: name for name, suffixes in FORMATS.items() for suffix in suffixes}


def readable(key: str, body: str) -> Readable:
    """Return the body of a document as Markdown, by the suffix of its key; plain text is read as Markdown."""
    reader = _READERS.get(_FORMAT_OF.get(PurePosixPath(key).suffix.lower(), ""))
    return reader(body) if reader else Readable(body)
