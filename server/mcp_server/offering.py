"""Handles the protocol's requests for resources, prompts and completion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    PromptReference,
    ReadResourceRequestParams,
    ReadResourceResult,
    ResourceTemplateReference,
)

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.errors.echo import abridge
from speckit_memory.server.calls.tool import SpeckitTool
from speckit_memory.server.prompts import catalogue as prompts
from speckit_memory.server.prompts.catalogue import find_prompt
from speckit_memory.server.prompts.prompt import Completed
from speckit_memory.server.replies.answering import WorkerPool, refuse
from speckit_memory.server.resources import catalogue as resources
from speckit_memory.server.resources.reading import read
from speckit_memory.server.resources.uris import TEMPLATE
from speckit_memory.server.workspace.workspace import Workspace

MOST = 100
"""Values per answer, the maximum of the protocol."""
_NOTHING = Completion(values=[], total=0, has_more=False)


def complete_argument(
    workspace: Workspace, reference: PromptReference | ResourceTemplateReference, argument: str, begun: str
) -> Completion:
    """Completes the value of an argument: names that begin with the text, then names that contain it, each sorted.

    Args:
        workspace: The workspace whose keys and folders are offered; without a store none are.
        reference: The prompt or the URI template.
        argument: Name of the argument.
        begun: The text typed so far; case is ignored.

    Raises:
        MCPError: For an unknown prompt, template or argument, with the nearest name.
    """
    kind = _kind(reference, argument)
    if not kind:
        return _NOTHING
    try:
        keys = workspace.memory().inventory.keys()
    except SpeckitError as error:
        if error.code != "E010":
            raise
        return _NOTHING
    found = _matching(begun, keys if kind == "key" else folders(keys))
    return Completion(values=found[:MOST], total=len(found), has_more=len(found) > MOST)


def folders(keys: Iterable[str]) -> list[str]:
    """The folders that contain memories at any depth, sorted."""
    found = {str(folder) for key in keys for folder in PurePosixPath(key).parents}
    return sorted(found - {"."})


def _kind(reference: PromptReference | ResourceTemplateReference, argument: str) -> Completed:
    kinds: dict[str, Completed]
    if isinstance(reference, PromptReference):
        prompt = find_prompt(reference.name)
        owner, kinds = f"the prompt {prompt.name}", {one.name: one.completed for one in prompt.arguments}
    elif reference.uri == TEMPLATE:
        owner, kinds = TEMPLATE, {"key": "key"}
    else:
        told = abridge(reference.uri)
        refuse(f"there is no resource template '{told}'; {nearest(told, [TEMPLATE])}", uri=told)
    if argument not in kinds:
        told = abridge(argument)
        refuse(f"{owner} has no argument '{told}'; {nearest(told, kinds)}", argument=told)
    return kinds[argument]


def _matching(begun: str, names: Iterable[str]) -> list[str]:
    typed = begun.casefold()
    holding = [(name, name.casefold()) for name in names]
    return [name for name, plain in holding if plain.startswith(typed)] + [
        name for name, plain in holding if typed in plain and not plain.startswith(typed)
    ]


Asked = ServerRequestContext[Any, Any]


class RequestHandlers:
    """Request handlers over a workspace. Entries that always exist are listed without the store."""

    def __init__(
        self,
        workspace: Workspace,
        tools: Mapping[str, SpeckitTool],
        answering: WorkerPool,
        seen: Callable[[], None],
        offers: Callable[[str], bool],
    ) -> None:
        """`seen` is called before memories are listed, so that later changes are notified. Prompts call any of `tools`;
        `offers` tells which of them the client has."""
        self._workspace = workspace
        self._seen = seen
        self._tools = tools
        self._answering = answering
        self._offers = offers

    def attach(self, server: Server[Any]) -> None:
        """Registers the handlers in place of the SDK's, which support neither paging nor our errors."""
        server.add_request_handler("resources/list", PaginatedRequestParams, self._resources)
        server.add_request_handler("resources/templates/list", PaginatedRequestParams, self._templates)
        server.add_request_handler("resources/read", ReadResourceRequestParams, self._read)
        server.add_request_handler("prompts/list", PaginatedRequestParams, self._prompts)
        server.add_request_handler("prompts/get", GetPromptRequestParams, self._prompt)
        server.add_request_handler("completion/complete", CompleteRequestParams, self._complete)

    async def _resources(self, _asked: Asked, params: PaginatedRequestParams) -> ListResourcesResult:
        if params.cursor is None:
            # the static first page needs neither the store nor a thread
            return resources.first_page(self._workspace)
        return await self._answering.run(partial(self._page, params.cursor))

    def _page(self, cursor: str) -> ListResourcesResult:
        self._seen()
        return resources.page_of_memories(self._workspace, cursor)

    async def _templates(self, _asked: Asked, _params: PaginatedRequestParams) -> ListResourceTemplatesResult:
        return resources.templates()

    async def _read(self, _asked: Asked, params: ReadResourceRequestParams) -> ReadResourceResult:
        return await self._answering.run(partial(read, self._workspace, params.uri), uri=abridge(params.uri))

    async def _prompts(self, _asked: Asked, _params: PaginatedRequestParams) -> ListPromptsResult:
        return prompts.list_prompts()

    async def _prompt(self, _asked: Asked, params: GetPromptRequestParams) -> GetPromptResult:
        return await prompts.message(params.name, params.arguments or {}, self._tools, self._offers)

    async def _complete(self, _asked: Asked, params: CompleteRequestParams) -> CompleteResult:
        asked = partial(complete_argument, self._workspace, params.ref, params.argument.name, params.argument.value)
        return CompleteResult(completion=await self._answering.run(asked))
