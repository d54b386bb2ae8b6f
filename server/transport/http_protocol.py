"""HTTP connections with an end: nobody holds one by sending or reading slowly, or by doing nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 10.0
"""In which a request must have arrived, all of it."""
WRITE_SECONDS = 20.0
"""For which a client may leave an answer unread while more of it waits."""
MOST_CONNECTIONS = 200
"""At once. One more takes the place of the oldest that has asked for nothing yet."""
LONGEST_HEAD = 32 << 10
"""Bytes of a request's first line and headers."""
KEEP_ALIVE_SECONDS = 5
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class BoundedProtocol(H11Protocol):
    """uvicorn's connection, with a time for every request and for every answer."""

    _arriving: asyncio.TimerHandle | None = None
    _writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Makes room for the connection, or refuses it when all others are at work."""
        super().connection_made(transport)
        self._arriving = self.loop.call_later(REQUEST_SECONDS, self._too_slow)
        if len(self.connections) <= MOST_CONNECTIONS:
            return
        # one that was given up stays among them until the loop has its turn: of many that come at once, each must
        # make another one give way
        open_ones = [one for one in self.connections if isinstance(one, BoundedProtocol) and not one.is_given_up]
        if len(open_ones) <= MOST_CONNECTIONS:
            return
        idle = (other for other in open_ones if other.waits and other is not self)
        oldest = min(idle, key=lambda other: other.begun, default=None)
        if oldest is not None:
            oldest.transport.abort()
        else:
            transport.write(_BUSY)
            transport.close()

    @property
    def is_given_up(self) -> bool:
        """Whether the connection ends as soon as the loop has its turn."""
        closing: bool = self.transport.is_closing()
        return closing

    @property
    def waits(self) -> bool:
        """Whether nothing is being answered on this connection."""
        return self.cycle is None or self.cycle.response_complete  # type: ignore[redundant-expr]  # None at first

    @property
    def begun(self) -> float:
        """When the request that has not arrived yet will be given up; of an idle connection, long ago."""
        return self._arriving.when() if self._arriving else 0.0

    def data_received(self, data: bytes) -> None:
        """Takes a part of a request."""
        super().data_received(data)
        if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR):
            self._has_arrived()
        elif self._arriving is None:
            self._arriving = self.loop.call_later(REQUEST_SECONDS, self._too_slow)

    def pause_writing(self) -> None:
        """The client does not read: it may not go on like that forever."""
        super().pause_writing()
        if self._writing is None:
            self._writing = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        self._is_read()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._has_arrived()
        self._is_read()
        super().connection_lost(exc)

    def _has_arrived(self) -> None:
        if self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None

    def _is_read(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _too_slow(self) -> None:
        self._arriving = None
        if self.waits:
            self.transport.write(_SLOW)
            self.transport.close()
        else:
            self.transport.abort()
