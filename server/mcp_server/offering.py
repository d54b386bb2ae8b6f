"""Handles the protocol's requests for resources, prompts and completion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    CompleteRequestParams,
    CompleteResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)

from speckit_memory.errors.echo import abridge
from speckit_memory.server.calls.tool import SpeckitTool
from speckit_memory.server.mcp_server.argument_completion import complete_argument
from speckit_memory.server.prompts import catalogue as prompts
from speckit_memory.server.replies.answering import WorkerPool
from speckit_memory.server.resources import catalogue as resources
from speckit_memory.server.resources.reading import read
from speckit_memory.server.workspace.workspace import Workspace

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
