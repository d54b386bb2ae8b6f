"""A plot of a page: two drawings, a caption, and its figures as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot. `caption` describes it and counts its queries; `rows` are its figures with a header row."""

    title: str
    svg: str
    caption: str
    rows: Sequence[Sequence[str]]
