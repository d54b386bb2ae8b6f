"""All prompts, and the rendering of their messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp_types import CallToolResult, GetPromptResult, ListPromptsResult, PromptMessage, TextContent

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.errors.echo import abridge
from speckit_memory.errors.names import displayable_name
from speckit_memory.server.calls.tool import SpeckitTool
from speckit_memory.server.prompts.decision_history import WHY
from speckit_memory.server.prompts.handover import HANDOVER
from speckit_memory.server.prompts.prompt import Prompt
from speckit_memory.server.prompts.remember import REMEMBER
from speckit_memory.server.replies.answering import as_protocol_error, refuse

PROMPTS = {prompt.name: prompt for prompt in (HANDOVER, WHY, REMEMBER)}


def list_prompts() -> ListPromptsResult:
    """All prompts on one page; does not use the store."""
    return ListPromptsResult(prompts=[prompt.listed() for prompt in PROMPTS.values()])


def find_prompt(name: str) -> Prompt:
    """The prompt of this name. Raises MCPError for an unknown one, with the nearest name."""
    if name not in PROMPTS:
        told = abridge(name)
        refuse(f"there is no prompt '{told}'; {nearest(told, PROMPTS)}", prompt=told)
    return PROMPTS[name]


class _Asking:
    """Calls tools; `offers` tells which of them the client has."""

    def __init__(self, tools: Mapping[str, SpeckitTool], offers: Callable[[str], bool]) -> None:
        self._tools = tools
        self.offers = offers

    async def __call__(self, tool: str, **given: Any) -> CallToolResult:
        # empty arguments were left out by the user: the tool's defaults apply
        return await self._tools[tool].run({key: value for key, value in given.items() if value != ""}, None)


async def message(
    name: str, arguments: Mapping[str, str], tools: Mapping[str, SpeckitTool], offers: Callable[[str], bool]
) -> GetPromptResult:
    """Renders the message of a prompt.

    Args:
        name: Name of the prompt.
        arguments: Its arguments.
        tools: All tools, called for the content.
        offers: Tells which tools the client has; the message refers only to these.

    Raises:
        MCPError: For an unknown prompt, invalid arguments, or a failing tool.
    """
    prompt = find_prompt(name)
    try:
        checked = prompt.checked(arguments)
    except SpeckitError as error:
        raise as_protocol_error(error, prompt=name) from None
    text = displayable_name(await prompt.write(checked, _Asking(tools, offers)))
    return GetPromptResult(
        description=prompt.description, messages=[PromptMessage(role="user", content=TextContent(text=text))]
    )
