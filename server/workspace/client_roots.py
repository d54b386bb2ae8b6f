"""Asks the client which folders it works in, under both generations of the protocol."""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import anyio
from mcp import MCPError
from mcp_types import InputRequiredResult, ListRootsRequest
from mcp_types.methods import INPUT_REQUIRED_METHODS
from mcp_types.version import is_version_at_least
from pydantic import BaseModel, ValidationError

from speckit_memory.config.files.paths import resolve_path
from speckit_memory.server.workspace.chosen_workspace import ChosenWorkspace

KEY = "workspace"
"""Key of the roots request in an answer that requires input."""
IN_ANSWERS = "2026-07-28"
"""From this version on a server asks within its answer; before it, by a separate request."""
PATIENCE_SECONDS = 10.0
"""How long a client may take to name its folders."""
CHANGED = "notifications/roots/list_changed"
NEEDS_NONE = frozenset({"initialize", "ping", "server/discover", "tools/list", "prompts/list", "logging/setLevel"})
"""Requests that are answered without a workspace."""
NO_ROOTS = "the client does not say which folders it works in (it has no roots)"


class _Root(BaseModel):
    uri: str


class _Roots(BaseModel):
    """The client's answer. The SDK's model rejects the whole list if one root is not a file."""

    roots: list[_Root]


class ClientRoots:
    """Middleware that chooses the workspace before the first request that needs it, and when the folders change."""

    def __init__(self, workspace: ChosenWorkspace) -> None:
        self._workspace = workspace
        self._known = False
        self._asking = anyio.Lock()

    async def __call__(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Passes the request on; newer clients are first asked for their roots by an answer."""
        if ctx.method == CHANGED:
            self._known = False
        elif ctx.request_id is not None and ctx.method not in NEEDS_NONE:
            # concurrent first requests must not ask the client twice
            async with self._asking:
                if not self._known and (asked := await self._ask(ctx)) is not None:
                    return asked
        return await call_next(ctx)

    async def _ask(self, ctx: Any) -> InputRequiredResult | None:
        capabilities = ctx.session.client_capabilities
        if capabilities is None or capabilities.roots is None:
            self._workspace.refuse(NO_ROOTS)
        elif is_version_at_least(ctx.protocol_version, IN_ANSWERS):
            # this method cannot ask; the call fails with E015 until another one has asked
            if ctx.method not in INPUT_REQUIRED_METHODS:
                return None
            if (answer := ((ctx.params or {}).get("inputResponses") or {}).get(KEY)) is None:
                return InputRequiredResult(input_requests={KEY: ListRootsRequest()})
            self._choose(answer)
        else:
            await self._ask_back(ctx)
        return None

    async def _ask_back(self, ctx: Any) -> None:
        try:
            with anyio.fail_after(PATIENCE_SECONDS):
                answer = await ctx.session.send_request(ListRootsRequest(), _Roots)
        except TimeoutError:
            self._workspace.refuse(f"the client did not say within {PATIENCE_SECONDS:g} s which folders it works in")
        except (MCPError, ValidationError) as error:
            logging.getLogger(__name__).warning("the client did not name its folders", exc_info=error)
            self._workspace.refuse("the client did not say which folders it works in, but sent an error")
        else:
            self._choose(answer.model_dump())

    def _choose(self, answer: object) -> None:
        try:
            found = _Roots.model_validate(answer)
        except ValidationError:
            self._workspace.refuse("the client's answer is not a list of roots")
            return
        self._known = self._workspace.choose(list(folders(root.uri for root in found.roots)))


def folders(uris: Iterable[str]) -> Iterable[Path]:
    """The local folders among a client's roots, with links resolved."""
    for uri in uris:
        parts = urlsplit(uri)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            continue
        path = url2pathname(parts.path) if sys.platform == "win32" else unquote(parts.path)
        if path and "\0" not in path:
            yield resolve_path(Path(path))
