"""The prompt `handover`: resume earlier work."""

from __future__ import annotations

from collections.abc import Mapping

from speckit_memory.server.console.markdown import one_line
from speckit_memory.server.prompts.prompt import QUOTED, Argument, Ask, Prompt, text_of

_ASKED = "where were we?"


async def write(arguments: Mapping[str, str], ask: Ask) -> str:
    """Writes the message: the last handover, or that of a task, and what to do with it."""
    task = arguments["task"]
    answer = text_of(await ask("memory_context", input=task or _ASKED, mode="resume", specFolder=arguments["folder"]))
    about = f" on this: {one_line(task)}" if task else ""
    return (
        f"Go on with the work{about}, where it stopped. The project memory was asked for its last handover.\n\n"
        f"{QUOTED}\n\n{answer}\n\n"
        "First report in a few sentences the state of the work, the next steps, and open questions or blockers; say so "
        "if the memory does not have them. If an excerpt is not enough, read the memory: memory_search with its "
        "key. Superseded memories are no longer valid. Then propose the next step, and wait for "
        "an answer before you change anything."
    )


HANDOVER = Prompt(
    "handover",
    "Resume earlier work",
    "Get the last handover: the state of the work, next steps and open questions.",
    (
        Argument("task", "The work to continue; without it the last handover of all", longest=10_000),
        Argument("folder", "Only memories of this folder and below", completed="folder"),
    ),
    write,
)
