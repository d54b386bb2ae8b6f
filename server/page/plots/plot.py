"""What every plot of a page is: two drawings, a caption, and the same figures as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot. `caption` says what is shown and over how many queries; `rows` hold its figures, names first."""

    title: str
    svg: str
    caption: str
    rows: Sequence[Sequence[str]]
