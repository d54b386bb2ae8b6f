"""Formats of documents, by their names in `sources.formats` of `config.yaml`."""

from __future__ import annotations

from collections.abc import Iterable

PLAIN = frozenset({".md", ".markdown", ".mdc", ".txt"})
"""Suffixes of Markdown and plain text, which are always indexed."""

FORMATS: dict[str, frozenset[str]] = {
    "rst": frozenset({".rst", ".rest"}),
    "html": frozenset({".html", ".htm", ".xhtml"}),
}
"""Formats that a workspace may enable, with their suffixes."""

DOCUMENT_SUFFIXES = PLAIN.union(*FORMATS.values())
"""The suffixes of all readable formats, in lower case."""


def suffixes_taken(formats: Iterable[str]) -> frozenset[str]:
    """The suffixes of files that are indexed: Markdown, plain text, and those of `formats`."""
    return PLAIN.union(*(FORMATS[name] for name in formats))
