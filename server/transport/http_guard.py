"""Checks Host and Origin of HTTP requests, which protects the server from web pages."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import PlainTextResponse

App = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]
_AUTHORITY = re.compile(rb"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)(?::([0-9]{1,5}))?")
_SCHEMES = (b"http://", b"https://")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_secure(address: str) -> bool:
    """Whether no one on the way can change what is read there: https, or http on this machine."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


class Guard:
    """Answers 421 to a foreign Host, 403 to a foreign Origin, 400 to ambiguous headers.

    Names are compared as a whole and in lower case: a name that only starts like ours, or has a user part, a trailing
    dot or a port that is not a number, is foreign. Any port is accepted unless a name was allowed with a port.
    """

    def __init__(self, app: App, names: Iterable[str]) -> None:
        self._app = app
        self._names = frozenset(name.lower().encode() for name in names)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Passes the request on, or answers it."""
        refused = self._refusal(scope["headers"]) if scope["type"] == "http" else None
        if refused:
            await PlainTextResponse(refused[1], status_code=refused[0])(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        values: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            values.setdefault(name.lower(), []).append(value)
        hosts, origins = values.get(b"host", []), values.get(b"origin", [])
        # duplicate headers are ambiguous: a proxy and this server might use different ones
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return 421, "Invalid Host header"
        if len(origins) > 1 or not all(map(self._is_our_origin, origins)):
            return 403, "Invalid Origin header"
        # the classic sign of request smuggling
        if b"transfer-encoding" in values and b"content-length" in values:
            return 400, "Transfer-Encoding and Content-Length exclude each other"
        if len(values.get(b"authorization", [])) > 1:
            return 400, "more than one Authorization header"
        return None

    def _is_our_origin(self, origin: bytes) -> bool:
        scheme = next((scheme for scheme in _SCHEMES if origin.lower().startswith(scheme)), None)
        return scheme is not None and self._is_ours(origin[len(scheme) :])

    def _is_ours(self, authority: bytes) -> bool:
        authority = authority.lower()
        parts = _AUTHORITY.fullmatch(authority)
        if parts is None or (parts[2] and int(parts[2]) > 65535):
            return False
        return parts[1] in self._names or authority in self._names
