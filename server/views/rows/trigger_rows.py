"""Memories whose trigger phrases stand in a prompt, as plain data, for the command and the tool (feature T3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.engine.search.triggers import TriggerMatches

EXCERPT = 200


def trigger_rows(found: TriggerMatches, *, text_field: str, state: bool, attention: bool) -> list[dict[str, Any]]:
    """A row for each match, best first; `state` and `attention` where they are wanted. What is HOT for a session stands
    whole, everything else by its beginning."""
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
            text_field: one.text if one.whole else cut_at_word(one.text, EXCERPT),
        }
        for one in found.matches
    ]


def related_rows(found: TriggerMatches) -> list[dict[str, Any]]:
    """A row for each memory that the matches activate, most of all first."""
    return [
        {"id": one.memory.id, "key": one.memory.key, "title": one.memory.title, "activation": round(one.activation, 4)}
        for one in found.related
    ]
