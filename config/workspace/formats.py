"""The formats of documents, by the names that `sources.formats` of `config.yaml` has for them."""

from __future__ import annotations

from collections.abc import Iterable

PLAIN = frozenset({".md", ".markdown", ".mdc", ".txt"})
"""Suffixes of Markdown and plain text, which are always taken."""

FORMATS: dict[str, frozenset[str]] = {
    "rst": frozenset({".rst", ".rest"}),
    "html": frozenset({".html", ".htm", ".xhtml"}),
}
"""Formats that a workspace asks for, each with its suffixes."""

DOCUMENT_SUFFIXES = PLAIN.union(*FORMATS.values())
"""All that can be read, in lower case."""


def suffixes_taken(formats: Iterable[str]) -> frozenset[str]:
    """The suffixes of the files that are taken below a folder: Markdown and plain text, and those of `formats`."""
    return PLAIN.union(*(FORMATS[name] for name in formats))
