"""Bounds HTTP connections in time: slow senders, slow readers and idle clients cannot hold one."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 10.0
"""Time for a whole request to arrive."""
WRITE_SECONDS = 20.0
"""Time for which a client may leave an answer unread while more of it is waiting."""
MOST_CONNECTIONS = 200
"""Connections at once. One more replaces the oldest one without a request in progress."""
LONGEST_HEAD = 32 << 10
"""Bytes of a request's first line and headers."""
KEEP_ALIVE_SECONDS = 5
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class BoundedProtocol(H11Protocol):
    """uvicorn's connection with time limits for requests and answers."""

    _arriving: asyncio.TimerHandle | None = None
    _writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Makes room for the connection, or refuses it if all others are busy."""
        super().connection_made(transport)
        self._arriving = self.loop.call_later(REQUEST_SECONDS, self._too_slow)
        if len(self.connections) <= MOST_CONNECTIONS:
            return
        # An aborted connection stays in the list until the loop runs. Skip it, so that each of many simultaneous
        # arrivals replaces a different one.
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
        """Whether the connection is closing and ends when the loop next runs."""
        closing: bool = self.transport.is_closing()
        return closing

    @property
    def waits(self) -> bool:
        """Whether no request is being answered on this connection."""
        return self.cycle is None or self.cycle.response_complete  # type: ignore[redundant-expr]  # None at first

    @property
    def begun(self) -> float:
        """The deadline (loop time) of the request that is arriving; 0 for an idle connection."""
        return self._arriving.when() if self._arriving else 0.0

    def data_received(self, data: bytes) -> None:
        """Receives part of a request; starts or stops its timer."""
        super().data_received(data)
        # h11: the whole request has been received, or the connection is unusable
        if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR):
            self._has_arrived()
        elif self._arriving is None:
            self._arriving = self.loop.call_later(REQUEST_SECONDS, self._too_slow)

    def pause_writing(self) -> None:
        """Starts the timer of a client that does not read."""
        super().pause_writing()
        if self._writing is None:
            self._writing = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Stops the timer, since the client reads again."""
        self._is_read()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops all timers."""
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
            # an answer is in progress: a second status line would corrupt it
            self.transport.abort()
