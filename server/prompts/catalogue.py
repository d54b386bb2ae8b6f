"""All prompts, and the way from a request to its message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp_types import CallToolResult, GetPromptResult, ListPromptsResult, PromptMessage, TextContent

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.errors.echo import abridged
from speckit_memory.errors.names import shown
from speckit_memory.server.calls.tool import SpeckitTool
from speckit_memory.server.prompts.handover import HANDOVER
from speckit_memory.server.prompts.prompt import Prompt
from speckit_memory.server.prompts.remember import REMEMBER
from speckit_memory.server.prompts.why import WHY
from speckit_memory.server.replies.answering import as_protocol_error, refuse

PROMPTS = {prompt.name: prompt for prompt in (HANDOVER, WHY, REMEMBER)}


def listed() -> ListPromptsResult:
    """All prompts, on one page; without a look at the store."""
    return ListPromptsResult(prompts=[prompt.listed() for prompt in PROMPTS.values()])


def named(name: str) -> Prompt:
    """The prompt of this name. Refuses any other, with the nearest."""
    if name not in PROMPTS:
        told = abridged(name)
        refuse(f"there is no prompt '{told}'; {nearest(told, PROMPTS)}", prompt=told)
    return PROMPTS[name]


class _Asking:
    """Asks all tools; the client has those that `offers` says."""

    def __init__(self, tools: Mapping[str, SpeckitTool], offers: Callable[[str], bool]) -> None:
        self._tools = tools
        self.offers = offers

    async def __call__(self, tool: str, **given: Any) -> CallToolResult:
        return await self._tools[tool].run({key: value for key, value in given.items() if value != ""}, None)


async def message(
    name: str, arguments: Mapping[str, str], tools: Mapping[str, SpeckitTool], offers: Callable[[str], bool]
) -> GetPromptResult:
    """The message of a prompt, which asks all tools and sends its reader to those that the client `offers`. Raises
    MCPError for an unknown one, for arguments, and as the tools that it asks."""
    prompt = named(name)
    try:
        checked = prompt.checked(arguments)
    except SpeckitError as error:
        raise as_protocol_error(error, prompt=name) from None
    text = shown(await prompt.write(checked, _Asking(tools, offers)))
    return GetPromptResult(
        description=prompt.description, messages=[PromptMessage(role="user", content=TextContent(text=text))]
    )
