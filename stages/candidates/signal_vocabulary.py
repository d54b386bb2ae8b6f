"""Corrections and preferences in the wording of a query."""

from __future__ import annotations

import re
from dataclasses import replace
from unicodedata import normalize

from pydantic import Field

from pipeline.contracts import About, Params
from pipeline.model import Plan, Query
from pipeline.ports import Store

CORRECTIONS = (
    "actually", "wait", "i was wrong", "correction", "not quite", "let me rephrase", "that's not right",
)  # fmt: skip
PREFERENCES = ("prefer", "like", "want", "always use", "never use", "i want", "please use")


class SignalVocabularyParams(Params):
    """Parameters of the signal vocabulary; the defaults are the catalogue's."""

    correction: float = Field(0.2, ge=0, le=1, description="Added to importance when the asker corrects something.")
    preference: float = Field(0.1, ge=0, le=1, description="Added to importance when the asker states a preference.")


class SignalVocabulary:
    """Detects words of correction ("actually", "i was wrong") and of preference ("prefer", "always use").

    Someone who corrects themselves needs other context than before, so what matches counts as more important: the
    trigger channel adds the sum to the importance of its matches, up to 1. Words are matched whole, after NFC and case
    folding. Feature C16.
    """

    about = About(features=("C16",))
    Params = SignalVocabularyParams

    def __init__(self, params: SignalVocabularyParams) -> None:
        self._kinds = (
            ("correction", _any_of(CORRECTIONS), params.correction),
            ("preference", _any_of(PREFERENCES), params.preference),
        )

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:  # noqa: ARG002 - the wording says it all
        """The plan with the boost of importance."""
        text = normalize("NFC", query.text).casefold().replace("’", "'")
        for kind, pattern, boost in self._kinds:
            if found := pattern.search(text):
                reason = f"signal_vocabulary: {kind} '{found.group()}', importance + {boost:g}"
                plan = replace(plan, importance_boost=plan.importance_boost + boost, reasons=plan.because(reason))
        return plan


def _any_of(phrases: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, phrases))})(?!\w)")
