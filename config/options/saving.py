"""The rules of a workspace for saving documents (docs/saving.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SECRETS = ("credentials", "all", "keep")
QUALITY = ("report", "mend", "require")
PREDICTION_ERROR = ("act", "report")
PASSAGES = ("all", "thinned")


@dataclass(frozen=True, slots=True)
class SavingRules:
    """`secrets`: the kinds left out of stored texts; "all" includes e-mail addresses, "keep" leaves nothing out.
    `quality`: whether poor documents are improved as stored ("mend"), or rejected when saved if they stay poor
    ("require"), or only scored. `prediction_error`: whether a save changes memories that it repeats or contradicts, or
    is only reported. `passages`: whether all passages are searched, or only those with enough content."""

    secrets: Literal["credentials", "all", "keep"] = "credentials"
    quality: Literal["mend", "require", "report"] = "report"
    prediction_error: Literal["act", "report"] = "act"
    passages: Literal["all", "thinned"] = "all"


SHIPPED_RULES = SavingRules()
"""The rules of a workspace without any setting."""
