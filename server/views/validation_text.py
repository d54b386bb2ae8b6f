"""The outcome of a judgement as plain data, for the command and the tool (feature T10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.memory.lifecycle.validations import ValidationResult

TAKEN_BACK = "it was archived: searches find it again"


def validated_data(judged: ValidationResult, session: str) -> dict[str, Any]:
    """The judged memory with its present figures, and the session if it has a name."""
    from speckit_memory.server.views.rows.rows import judgement

    return {
        "id": judged.id,
        "key": judged.key,
        "tier": str(judged.tier),
        "eligible": judged.eligible,
        "kept_days": round(judged.kept_days, 1),
        **({"restored": True} if judged.restored else {}),
        **judgement(judged),
        **({"session": session} if session else {}),
    }
