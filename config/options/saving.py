"""How a workspace wants documents taken in (docs/saving.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SECRETS = ("credentials", "all", "keep")
QUALITY = ("report", "mend", "require")
PREDICTION_ERROR = ("act", "report")
PASSAGES = ("all", "thinned")


@dataclass(frozen=True, slots=True)
class SavingRules:
    """`secrets`: what is left out of what is stored, "all" with addresses of e-mail, "keep" for nothing. `quality`:
    whether poor documents are mended as stored, and whether one that stays poor is refused when it is saved, or whether
    the score is told and nothing more. `prediction_error`: whether what is saved changes what it repeats or
    contradicts, or whether the verdict is told and nothing more. `passages`: whether all of a document is searched, or
    passages that say little are left out."""

    secrets: Literal["credentials", "all", "keep"] = "credentials"
    quality: Literal["mend", "require", "report"] = "report"
    prediction_error: Literal["act", "report"] = "act"
    passages: Literal["all", "thinned"] = "all"


SHIPPED_RULES = SavingRules()
"""What holds when nobody decides."""
