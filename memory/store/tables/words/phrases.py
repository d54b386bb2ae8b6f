"""The normalised form in which trigger phrases are compared (feature C7)."""

from __future__ import annotations

from unicodedata import normalize


def normalised_phrase(text: str) -> str:
    """The text in NFC, case-folded, stripped, with single blanks between words; may be empty."""
    return " ".join(normalize("NFC", normalize("NFC", text).casefold()).split())
