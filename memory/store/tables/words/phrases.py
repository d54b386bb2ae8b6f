"""The form in which trigger phrases are compared (feature C7)."""

from __future__ import annotations

from unicodedata import normalize


def normalised_phrase(text: str) -> str:
    """NFC, case-folded, with single blanks between words and none around; empty when nothing is left."""
    return " ".join(normalize("NFC", normalize("NFC", text).casefold()).split())
