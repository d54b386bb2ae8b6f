"""What became of a judgement, as plain data, for the command and the tool that take it (feature T10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.memory.lifecycle.validations import Validated

TAKEN_BACK = "it was put away: searches find it again"


def validated_data(judged: Validated, session: str) -> dict[str, Any]:
    """The memory that was judged, how it stands now, and the session that said so, if it has a name."""
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
