"""`memory_match_triggers`: find memories whose trigger phrases occur in a prompt (feature T3)."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Field

from speckit_memory.server.calls.parameters import Flag, SessionId
from speckit_memory.server.calls.unused_parameters import UnusedParameters
from speckit_memory.server.console.markdown import about, fields, one_line, quote_text
from speckit_memory.server.replies.envelope import TEXT_FIELD, Reply, Rows
from speckit_memory.server.views.rows.trigger_rows import related_rows, trigger_rows
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 1500
MOST_NAMED = 5
"""Related memories listed in the text; the data has all."""


def idle(values: Mapping[str, Any]) -> UnusedParameters | None:
    """The parameters that only affect the attention of a session."""
    if not values["include_cognitive"]:
        return UnusedParameters(("session_id", "turnNumber"), "include_cognitive is false")
    return None if values["session_id"] else UnusedParameters(("turnNumber",), "no session is named")


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def memory_match_triggers(
        prompt: Annotated[str, Field(min_length=1, max_length=10_000)],
        limit: Annotated[int, Field(strict=True, ge=1, le=50)] = 3,
        session_id: SessionId = "",
        turnNumber: Annotated[int | None, Field(strict=True, ge=0, le=2**31)] = None,  # noqa: N803 -- the specification's
        include_cognitive: Flag = True,
    ) -> Reply:
        """Fast: memories whose trigger phrases occur in a prompt.\f

        Args:
            prompt: Text to look for trigger phrases in.
            limit: Maximum number of memories.
            session_id: Name of the session; "" for none.
            turnNumber: Turn of the session's conversation; None if unknown.
            include_cognitive: Whether the session's attention orders the memories.
        """
        from speckit_memory.errors.echo import plural

        memory = workspace.memory()
        session = session_id if include_cognitive else ""
        found = memory.triggers.match(prompt, limit=limit, session=session, turn=turnNumber)
        rows = trigger_rows(found, text_field=TEXT_FIELD, state=include_cognitive, attention=bool(session))
        mind = (
            f"{found.attended} of them in the attention of session {one_line(session_id)}" if session and rows else ""
        )
        related = related_rows(found)
        named = ", ".join(f"{one_line(row['key'])} (id {row['id']})" for row in related[:MOST_NAMED])
        facts = [mind, f"related: {named}" if named else ""]
        hints = () if rows else ("no trigger phrase occurs in the prompt; memory_search searches for its words",)

        def note(shown: Rows) -> None:
            memory.triggers.matched(found, len(shown), session=session, turn=turnNumber)

        return Reply(
            f"{plural(found.total, 'memory')} triggered",
            {
                "total": found.total,
                "attended": found.attended,
                "results": rows,
                **({"related": related} if session else {}),
            },
            hints,
            rows="results",
            facts="\n".join(filter(None, facts)),
            row_text=_row_text,
            after=note,
            again=None if session else note,
        )

    return memory_match_triggers


def _row_text(number: int, row: dict[str, Any]) -> str:
    shown = [f"\n## {number}. {one_line(row['key'])}"]
    further = {name: row.get(name, "") for name in ("attention", "learned_phrases")}
    phrases = ", ".join(row["phrases"])
    said = f"triggered by: {one_line(phrases)}" if phrases else ""
    title = row["title"] if row["title"] != row["key"] else ""
    tier = row["tier"] if row["tier"] != "normal" else ""
    shown.append(about(title, f"id {row['id']}", tier, row.get("state", ""), said, fields(further)))
    return "\n".join([*shown, quote_text(row[TEXT_FIELD])])
