"""The clients subscribed to changes, under both generations of the protocol, and the tasks that notify them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
from mcp_types import (
    EmptyResult,
    NotificationParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from speckit_memory.server.listening.file_watch import FileWatch
from speckit_memory.server.listening.follower import DocumentChange, Follower
from speckit_memory.server.logging import logs
from speckit_memory.server.replies.answering import refuse
from speckit_memory.server.replies.worker_calls import ThreadLimits
from speckit_memory.server.workspace.workspace import Workspace

MOST_STREAMS = 64
"""Open streams of changes: fewer than the requests that a client may have in progress over stdio."""
MOST_WANTED = 1_000
"""Resources that all clients together may subscribe to."""
TELLING_SECONDS = 5.0
"""How long to wait for a client that does not read; the others are notified meanwhile."""
_GREETINGS = ("initialize", "server/discover")
_LISTS = ("prompts", "resources", "tools")

Asked = ServerRequestContext[Any, Any]
Begin = Callable[[str], Awaitable[None]]
"""Records the state of a resource when a client subscribes to it."""


class Clients:
    """The receivers of notifications: initialized connections, and the streams that newer clients open."""

    def __init__(self, begin: Begin) -> None:
        self._begin = begin
        self._bus = InMemorySubscriptionBus()
        self._stream = ListenHandler(self._bus, max_subscriptions=MOST_STREAMS)
        self._connections: dict[Connection, set[str]] = {}
        self._streamed: Counter[str] = Counter()
        self._streams = 0

    def attach(self, server: Server[Any]) -> None:
        """Registers the handlers of subscription requests."""
        server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, self._listen)
        server.add_request_handler("resources/subscribe", SubscribeRequestParams, self._subscribe)
        server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)
        server.add_notification_handler("notifications/initialized", NotificationParams, self._initialized)
        server.middleware.append(self._announce)

    @property
    def any(self) -> bool:
        """Whether any client receives notifications."""
        return bool(self._connections or self._streams)

    def wanted(self) -> set[str]:
        """The URIs of all subscribed resources, as the clients wrote them."""
        return set(self._streamed).union(*self._connections.values())

    async def tell(self, *, listed: bool, changed: Iterable[str]) -> None:
        """Notifies clients that the list of resources changed (`listed`), and which subscribed resources did."""
        uris = set(changed)
        if listed:
            await self._bus.publish(ResourcesListChanged())
        for uri in uris:
            await self._bus.publish(ResourceUpdated(uri=uri))
        async with anyio.create_task_group() as group:
            for connection, subscribed in list(self._connections.items()):
                group.start_soon(_tell, connection, listed, uris & subscribed)

    async def _announce(self, ctx: Asked, call_next: CallNext) -> HandlerResult:
        """Announces which lists may change: only that of resources. The SDK announces none to clients that initialize
        and all to those that open streams."""
        result = await call_next(ctx)
        if ctx.method in _GREETINGS and isinstance(result, dict):
            for name in _LISTS:
                result["capabilities"][name]["listChanged"] = name == "resources"
        return result

    async def _initialized(self, asked: Asked, _params: NotificationParams) -> None:
        connection = _connection(asked)
        if connection not in self._connections:
            self._connections[connection] = set()
            connection.exit_stack.callback(self._connections.pop, connection, None)

    async def _subscribe(self, asked: Asked, params: SubscribeRequestParams) -> EmptyResult:
        await self._admit([params.uri])
        subscribed = self._connections.get(_connection(asked))
        if subscribed is None:
            refuse("send notifications/initialized before you subscribe")
        subscribed.add(params.uri)
        return EmptyResult()

    async def _unsubscribe(self, asked: Asked, params: UnsubscribeRequestParams) -> EmptyResult:
        self._connections.get(_connection(asked), set()).discard(params.uri)
        return EmptyResult()

    async def _listen(self, asked: Asked, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        uris = set(params.notifications.resource_subscriptions or ())
        await self._admit(uris)
        self._streamed.update(uris)
        self._streams += 1
        try:
            return await self._stream(asked, params)
        finally:
            self._streams -= 1
            self._streamed = self._streamed - Counter(uris)

    async def _admit(self, uris: Iterable[str]) -> None:
        """Refuses subscriptions above the limit; records the present state of each, so that no later change is
        missed."""
        known = self.wanted()
        new = set(uris) - known
        if len(known) + len(new) > MOST_WANTED:
            refuse(f"{len(known):,} resources are subscribed to already, at most {MOST_WANTED:,} are accepted")
        for uri in new:
            await self._begin(uri)


async def _tell(connection: Connection, listed: bool, uris: set[str]) -> None:
    with anyio.move_on_after(TELLING_SECONDS):
        if listed:
            await connection.send_resource_list_changed()
        for uri in sorted(uris):
            await connection.send_resource_updated(uri)


def _connection(asked: Asked) -> Connection:
    """The connection of a request. The SDK offers no public access to it, nor another way to learn that it closes."""
    return asked.session._connection


class ChangeNotifier:
    """Follows the store for a server's clients while the server runs."""

    def __init__(self, workspace: Workspace, limits: ThreadLimits, *, watch: bool) -> None:
        """With `watch`, changed files are indexed, too."""
        self._name = workspace.name
        self._follower = Follower(workspace, limits.reading)
        self._watch = FileWatch(workspace, limits.lengthy) if watch else None
        self.clients = Clients(self._follower.begin)
        self.seen: Callable[[], None] = self._follower.seen
        """Called before the list of resources is read, in the reading thread: later changes are notified."""

    def lifespan(self, _server: Any) -> AbstractAsyncContextManager[None]:
        """The context in which the server runs."""
        return self._running()

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            with logs.about(self._name):  # tasks inherit the context in which they start
                group.start_soon(self._follower.run, lambda: self.clients.any, self.clients.wanted, self._tell)
                if self._watch is not None:
                    group.start_soon(self._watch.run)
            yield
            group.cancel_scope.cancel()

    async def _tell(self, change: DocumentChange) -> None:
        await self.clients.tell(listed=change.listed, changed=change.changed)
