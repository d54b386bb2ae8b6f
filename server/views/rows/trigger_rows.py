"""Trigger matches as plain data, for the command and the tool (feature T3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.engine.search.triggers import TriggerMatches

EXCERPT = 200


def trigger_rows(found: TriggerMatches, *, text_field: str, state: bool, attention: bool) -> list[dict[str, Any]]:
    """One row per match, best first.

    Memories that are HOT in the session have their whole text, others an excerpt.

    Args:
        found: The matches.
        text_field: Name of the field for the text.
        state: Whether to include the state of the memory.
        attention: Whether to include its attention in the session.
    """
    from speckit_memory.memory.parsing.limits import cut_at_word

    return [
        {
            "id": one.memory.id,
            "key": one.memory.key,
            "title": one.memory.title,
            "score": round(one.score, 4),
            "tier": str(one.memory.tier),
            "phrases": list(one.phrases),
            **({"learned_phrases": one.learned} if one.learned else {}),
            **({"state": one.state} if state else {}),
            **({"attention": round(one.attention, 4)} if attention else {}),
            # memories with high attention are sent whole: the agent is working with them
            text_field: one.text if one.whole else cut_at_word(one.text, EXCERPT),
        }
        for one in found.matches
    ]


def related_rows(found: TriggerMatches) -> list[dict[str, Any]]:
    """One row per memory activated by the matches, highest activation first."""
    return [
        {"id": one.memory.id, "key": one.memory.key, "title": one.memory.title, "activation": round(one.activation, 4)}
        for one in found.related
    ]
