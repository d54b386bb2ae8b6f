"""The prompt `remember`: save the results of a session."""

from __future__ import annotations

from collections.abc import Mapping

from speckit_memory.server.console.markdown import one_line
from speckit_memory.server.prompts.prompt import QUOTED, Argument, Ask, Prompt, error_of, text_of

_RELATED = 5
_NO_STORE = "E010"
_LINK = "memory_causal_link"
_LINKED = f"is linked to it: {_LINK} with relation=supersedes."
_DECLARED = "says so before its first heading: ---, causalLinks: {supersedes: [KEY]}, --- on separate lines."
_FORM = """\
```markdown
# What this is about

<!-- ANCHOR:summary -->
What was decided or found out, and why; one paragraph.
<!-- /ANCHOR:summary -->

<!-- ANCHOR:state -->
What is done, what is missing.
<!-- /ANCHOR:state -->

<!-- ANCHOR:next-steps -->
- What is to be done next, in order.
<!-- /ANCHOR:next-steps -->

<!-- ANCHOR:blockers -->
- What is open, or waits for another person.
<!-- /ANCHOR:blockers -->
```"""
"""The sections that the prompt `handover` and the mode `resume` of `memory_context` look for."""


async def write(arguments: Mapping[str, str], ask: Ask) -> str:
    """Writes the message: the memories on the topic, and how to add this session to them."""
    topic, folder = arguments["topic"], arguments["folder"]
    about = f" It was about: {one_line(topic)}" if topic else ""
    place = f" with folder={one_line(folder)}" if folder else ""
    return (
        f"Remember this session for those who continue the work.{about}\n\n"
        f"{await _stored(topic, folder, ask)}"
        "Write down what will matter later and is not in any file yet: decisions with their reasons, what turned out "
        "to be wrong, how far the work is, what comes next. Leave out what the code or the documents say, and every "
        f"secret. Use this form, without sections that would be empty:\n\n{_FORM}\n\n"
        "If a memory covers this already, add to it: memory_save with filePath (its key), content and "
        "edit=append, or edit=replace with section. Else create one: memory_save with title and content"
        f"{place}. Check with dryRun=true first, and report what was saved, by its key. What replaces an earlier "
        f"decision {_LINKED if ask.offers(_LINK) else _DECLARED}"
    )


async def _stored(topic: str, folder: str, ask: Ask) -> str:
    if not topic:
        return "First use memory_search to check whether memories cover it already.\n\n"
    answer = await ask("memory_search", query=topic, limit=_RELATED, specFolder=folder)
    if answer.is_error and error_of(answer)["code"] == _NO_STORE:
        return "Nothing is stored yet.\n\n"
    return f"This is stored on it already. {QUOTED}\n\n{text_of(answer)}\n\n"


REMEMBER = Prompt(
    "remember",
    "Remember this session",
    "Save what a session decided and where it stopped, next to the memories on its topic.",
    (
        Argument("topic", "What the session was about; related memories are shown", longest=10_000),
        Argument("folder", "Where a new memory is written", completed="folder"),
    ),
    write,
)
