"""The prompt `why`: explain a decision."""

from __future__ import annotations

from collections.abc import Mapping

from speckit_memory.server.console.arguments.memory_names import memory_name
from speckit_memory.server.prompts.prompt import QUOTED, Argument, Ask, Prompt, text_of


async def write(arguments: Mapping[str, str], ask: Ask) -> str:
    """Writes the message: the memory, its causes and consequences, and how to explain them."""
    name = memory_name(arguments["memory"])
    whole = await ask("memory_search", key=str(name))  # first, as its error offers the nearest keys for an unknown one
    text = text_of(whole)
    found = (whole.structured_content or {})["data"]["results"]
    lineage = text_of(await ask("memory_drift_why", memoryId=found[0]["id"] if found else name))
    return (
        "Explain why this was decided.\n\n"
        f"{QUOTED}\n\n{text}\n\n{lineage}\n\n"
        "Report the decision, its reasons and what it was derived from. If another memory supersedes or contradicts "
        "it, say what holds today. Cite the memory behind each reason by its key. If a linked memory matters, read it: "
        "memory_search with its key. If the reasons are not written down, say so rather than guess."
    )


WHY = Prompt(
    "why",
    "Why was this decided?",
    "Explain a decision from its memory and the causal links around it.",
    (Argument("memory", "The key or id of the memory", required=True, longest=500, completed="key"),),
    write,
)
