"""Detects corrections and preferences in the wording of a query."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from speckit_memory.config.yaml.signal_words import BOOSTS, signal_words
from speckit_memory.pipeline.model.columns import Plan, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, Params


class SignalVocabularyParams(Params):
    """The boosts of importance."""

    correction: float = Field(
        BOOSTS["correction"], ge=0, le=1, description="Added to importance if the query corrects something."
    )
    preference: float = Field(
        BOOSTS["preference"], ge=0, le=1, description="Added to importance if the query states a preference."
    )


class SignalVocabulary:
    """Detects words of correction ("actually", "i was wrong") and of preference ("prefer", "always use").

    After a correction the user needs other context than before, so matches count as more important: the trigger channel
    adds the sum to the importance of its matches, up to 1. Words are matched whole, after NFC and case folding. Feature
    C16.
    """

    about = About(features=("C16",))
    Params = SignalVocabularyParams

    def __init__(self, params: SignalVocabularyParams) -> None:
        self._boosts = {"correction": params.correction, "preference": params.preference}

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:  # noqa: ARG002 - only the wording is used
        """The plan with the boost of importance."""
        for kind, phrase in signal_words(query.text).items():
            boost = self._boosts[kind]
            reason = f"signal_vocabulary: {kind} '{phrase}', importance + {boost:g}"
            plan = replace(plan, importance_boost=plan.importance_boost + boost, reasons=plan.because(reason))
        return plan
