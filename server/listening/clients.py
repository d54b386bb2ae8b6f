"""The clients that want to hear of changes, in both eras of the protocol, and what each of them wants to hear."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
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

from speckit_memory.server.replies.answering import refuse

MOST_STREAMS = 64
"""Streams of changes that are open at once: fewer than the requests that a client may have under way over stdio."""
MOST_WANTED = 1_000
"""Resources that all clients together may want to hear of."""
TELLING_SECONDS = 5.0
"""So long a client that reads nothing is waited for; the others are told meanwhile."""
_GREETINGS = ("initialize", "server/discover")
_LISTS = ("prompts", "resources", "tools")

Asked = ServerRequestContext[Any, Any]
Begin = Callable[[str], Awaitable[None]]
"""Notes how a resource stands as somebody begins to want to hear of it."""


class Clients:
    """Who hears of changes: connections that shook hands, and the streams that newer clients open for it."""

    def __init__(self, begin: Begin) -> None:
        self._begin = begin
        self._bus = InMemorySubscriptionBus()
        self._stream = ListenHandler(self._bus, max_subscriptions=MOST_STREAMS)
        self._connections: dict[Connection, set[str]] = {}
        self._streamed: Counter[str] = Counter()
        self._streams = 0

    def attach(self, server: Server[Any]) -> None:
        """Takes over the requests by which clients say what they want to hear."""
        server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, self._listen)
        server.add_request_handler("resources/subscribe", SubscribeRequestParams, self._subscribe)
        server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)
        server.add_notification_handler("notifications/initialized", NotificationParams, self._initialized)
        server.middleware.append(self._announce)

    @property
    def any(self) -> bool:
        """Whether there is somebody to tell."""
        return bool(self._connections or self._streams)

    def wanted(self) -> set[str]:
        """The resources that somebody wants to hear of, as they were named."""
        return set(self._streamed).union(*self._connections.values())

    async def tell(self, *, listed: bool, changed: Iterable[str]) -> None:
        """Tells that the list of resources is another one, and which of those that are `wanted` have changed."""
        uris = set(changed)
        if listed:
            await self._bus.publish(ResourcesListChanged())
        for uri in uris:
            await self._bus.publish(ResourceUpdated(uri=uri))
        async with anyio.create_task_group() as group:
            for connection, subscribed in list(self._connections.items()):
                group.start_soon(_tell, connection, listed, uris & subscribed)

    async def _announce(self, ctx: Asked, call_next: CallNext) -> HandlerResult:
        """Says of which lists clients hear that they have changed. The SDK takes none of them to change for clients
        that shake hands, and all for those that open streams."""
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
            refuse("say notifications/initialized before you subscribe")
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
        """Refuses more than are kept; notes how each stands now, so that no change from here on is missed."""
        known = self.wanted()
        new = set(uris) - known
        if len(known) + len(new) > MOST_WANTED:
            refuse(f"{len(known):,} resources are subscribed to already, {MOST_WANTED:,} are the most")
        for uri in new:
            await self._begin(uri)


async def _tell(connection: Connection, listed: bool, uris: set[str]) -> None:
    with anyio.move_on_after(TELLING_SECONDS):
        if listed:
            await connection.send_resource_list_changed()
        for uri in sorted(uris):
            await connection.send_resource_updated(uri)


def _connection(asked: Asked) -> Connection:
    """The connection of a request. The SDK has no public way to it from here, and no other end of it to hear of."""
    return asked.session._connection
