"""What is noted beside answers, in the evaluation database (docs/workspace.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Recorded = Literal["all", "shadows", "off"]
RECORDED: tuple[Recorded, ...] = ("all", "shadows", "off")
"""Every query that is served, only those that another pipeline answered too, or none."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What is noted of queries that are served, and how long it is kept.

    `keep_texts` is for how many days the words of a query are kept, so that it can be replayed, 0 for never; `observe`
    is the share of queries whose scores are kept part by part (feature E7) and `sample` the share that is noted, both
    [0, 1].
    """

    record: Recorded = "all"
    keep_texts: int = 7
    keep_days: int = 90
    max_mb: int = 50
    observe: float = 0.05
    sample: float = 1.0

    @property
    def texts(self) -> bool:
        """Whether the words of queries are kept at all."""
        return self.keep_texts > 0
