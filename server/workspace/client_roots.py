"""Serves the workspace that the client chooses once per connection, by the folders it works in."""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
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
from speckit_memory.config.workspace.settings import Settings, settings
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import list_names
from speckit_memory.server.console.arguments.options import Common
from speckit_memory.server.replies.answer_cache import SECONDS
from speckit_memory.server.workspace.workspace import NO_WORKSPACE, Workspace

NAMED = 10
"""Folders listed in an error."""
_ELSEWHERE = (
    "start the server with one --workspace, in a process for each",
    "serve over HTTP, where each workspace has an address",
)


class ChosenWorkspace(Workspace):
    """A workspace that is selected by the folders the client works in.

    The choice holds for the connection: later answers of the client never lead to another workspace.
    """

    def __init__(self, common: Common, roots: Mapping[str, Path], *, cache_seconds: float = SECONDS) -> None:
        """`roots` are the folders that may be served, by name."""
        self._roots = roots
        self._chosen: Settings | None = None
        self._refused: SpeckitError | None = self._nothing("the client has not said which folder it works in")
        self._common = common
        super().__init__(
            lambda create: common.open(create=create, root=self._config.root, stand_in=True),
            None,
            cache_seconds=cache_seconds,
        )

    @property
    def _config(self) -> Settings:
        """The settings of the workspace. Raises E015 unless one is chosen and the client still works in it."""
        if self._refused is not None:
            raise self._refused
        assert self._chosen is not None
        return self._chosen

    def warm_up(self) -> None:
        """Loads the store if a workspace is chosen; otherwise the call that chooses one opens it anyway."""
        if self._refused is None:
            super().warm_up()

    def choose(self, announced: Sequence[Path]) -> bool:
        """Chooses the workspace that contains the client's folders. Returns False if there is none or more than one;
        every call is refused then, with the reason."""
        lies_in = {
            name: folder for folder in announced for name, root in self._roots.items() if folder.is_relative_to(root)
        }
        told = list_names([str(folder) for folder in announced], NAMED) or "none"
        if not lies_in:
            self._refused = self._nothing(f"the client's folders are not served here: {told}")
        elif len(lies_in) > 1:
            self._refused = self._nothing(f"the client works in several workspaces: {', '.join(lies_in)} ({told})")
        else:
            [name] = lies_in
            self._take(name)
        return self._refused is None

    def refuse(self, reason: str) -> None:
        """Refuses every call until a workspace is chosen."""
        self._refused = self._nothing(reason)

    def _take(self, name: str) -> None:
        found = replace(settings(None, self._common.pipeline, self._roots[name]), overrides=self._common.overrides)
        # never switch: calls in progress still use the store of the first workspace
        if self._chosen is not None and self._chosen.root != found.root:
            before = next(one for one, root in self._roots.items() if root == self._chosen.root)
            self._refused = SpeckitError(
                NO_WORKSPACE,
                f"this connection serves '{before}', but the client now works in '{name}'",
                hint="A connection has one workspace, so that no call in progress reaches another.",
                actions=("reconnect", *_ELSEWHERE),
            )
            return
        self._chosen, self._refused, self.name = found, None, name

    def _nothing(self, reason: str) -> SpeckitError:
        return SpeckitError(NO_WORKSPACE, reason, hint=f"Served are {', '.join(self._roots)}.", actions=_ELSEWHERE)


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
