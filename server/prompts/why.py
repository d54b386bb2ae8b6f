"""The prompt `why`: why something was decided."""

from __future__ import annotations

from collections.abc import Mapping

from speckit_memory.server.console.arguments.memory_names import memory_name
from speckit_memory.server.prompts.answers import text_of
from speckit_memory.server.prompts.prompt import QUOTED, Argument, Ask, Prompt


async def write(arguments: Mapping[str, str], ask: Ask) -> str:
    """The message: the memory itself, what led to it and came of it, and how to tell that."""
    name = memory_name(arguments["memory"])
    whole = await ask("memory_search", key=str(name))  # first: it names the nearest keys of one that is not there
    text = text_of(whole)
    found = (whole.structured_content or {})["data"]["results"]
    lineage = text_of(await ask("memory_drift_why", memoryId=found[0]["id"] if found else name))
    return (
        "Explain why this was decided.\n\n"
        f"{QUOTED}\n\n{text}\n\n{lineage}\n\n"
        "Tell what was decided and for which reasons, what it was derived from, and whether something supersedes or "
        "contradicts it by now: then say what holds today. Name the memory behind each reason by its key. Read those "
        "that the links name where they matter: memory_search with their key. Where the reasons are not written down, "
        "say so rather than guess."
    )


WHY = Prompt(
    "why",
    "Why was this decided?",
    "Explain a decision from the memory that holds it and the causal links around it.",
    (Argument("memory", "The key or id of the memory", required=True, longest=500, completed="key"),),
    write,
)
