"""The prompt `handover`: go on where work stopped."""

from __future__ import annotations

from collections.abc import Mapping

from speckit_memory.server.console.markdown import one_line
from speckit_memory.server.prompts.answers import text_of
from speckit_memory.server.prompts.prompt import QUOTED, Argument, Ask, Prompt

_ASKED = "where were we?"


async def write(arguments: Mapping[str, str], ask: Ask) -> str:
    """The message: the last hand-over, or that of a task, and what to do with it."""
    task = arguments["task"]
    answer = text_of(await ask("memory_context", input=task or _ASKED, mode="resume", specFolder=arguments["folder"]))
    about = f" on this: {one_line(task)}" if task else ""
    return (
        f"Go on with the work{about}, where it stopped. The project memory was asked for its last hand-over.\n\n"
        f"{QUOTED}\n\n{answer}\n\n"
        "First tell in a few sentences where the work stands, what is next, and what is open or blocks it; say so "
        "where the memory does not tell. Where an excerpt is not enough, read the memory: memory_search with its "
        "key. What was superseded holds no more. Then propose the next step, and wait for "
        "an answer before you change anything."
    )


HANDOVER = Prompt(
    "handover",
    "Go on where work stopped",
    "Bring the last hand-over: where the work stands, what is next, what is open.",
    (
        Argument("task", "The work to go on with; without it the last hand-over of all", longest=10_000),
        Argument("folder", "Only memories of this folder and below", completed="folder"),
    ),
    write,
)
