"""Settings for recording answered queries in the evaluation database (docs/workspace.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Recorded = Literal["all", "shadows", "off"]
RECORDED: tuple[Recorded, ...] = ("all", "shadows", "off")
"""All served queries, only those that another pipeline answered too, or none."""


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """Which data of served queries are recorded, and for how long.

    `keep_texts`: days for which the words of a query are kept for replay, 0 for never; `observe`: share of queries with
    scores recorded by step (feature E7); `sample`: share of queries recorded. Shares are in [0, 1].
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
