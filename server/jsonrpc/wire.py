"""The stdio transport: invalid lines are answered, queues are bounded, and a client cannot block the server.

The SDK's transport reads lines of any length, silently drops invalid ones, and blocks on a client that does not read.
Here one thread reads, one writes, and the event loop never waits for either.
"""

from __future__ import annotations

import json
import os
import select
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from threading import Condition, Thread
from typing import Any

import anyio
import anyio.from_thread
from anyio.lowlevel import EventLoopToken, current_token
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp_types.jsonrpc import JSONRPCMessage, jsonrpc_message_adapter
from pydantic import ValidationError
from pydantic_core import from_json

from speckit_memory.errors.echo import abridge
from speckit_memory.server.jsonrpc.lines import LONGEST_ID, LONGEST_LINE, Lines, TooLong, is_id
from speckit_memory.server.logging.line_writer import LineWriter


class RefusedError(Exception):
    """A line that is not a valid message; `answer` is the error for the client."""

    def __init__(self, code: int, message: str, request_id: Any = None) -> None:
        super().__init__(message)
        self.answer = refusal(code, message, request_id)


def refusal(code: int, message: str, request_id: Any = None) -> JSONRPCError:
    """Builds an error answer; without an id if none could be read."""
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message))


def parse(line: bytes) -> JSONRPCMessage:
    """Parses a line. Raises RefusedError if it is not a message.

    Invalid UTF-8 and unpaired surrogates, which clients produce when they cut a text, are read as U+FFFD.
    """
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        # slow path, only for invalid lines: parse leniently to find the cause and the id
        return _mended(line)
    if isinstance(message, JSONRPCNotification):
        return _checked(message, from_json(line))
    return _checked(message, {})


def _mended(line: bytes) -> JSONRPCMessage:
    try:
        document = json.loads(line.decode("utf-8-sig", "replace"))
        text = json.dumps(document, ensure_ascii=False)
    except RecursionError:
        raise RefusedError(PARSE_ERROR, "this line is nested too deeply") from None
    except ValueError as error:
        raise RefusedError(PARSE_ERROR, f"this line is not JSON: {abridge(str(error))}") from None
    if isinstance(document, list):
        raise RefusedError(INVALID_REQUEST, "batches are not accepted: send one message per line")
    if not isinstance(document, dict):
        raise RefusedError(INVALID_REQUEST, "a message is a JSON object")
    # joins escaped surrogate pairs and replaces unpaired ones by U+FFFD
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    try:
        message = jsonrpc_message_adapter.validate_json(whole, by_name=False)
    except ValidationError:
        found = document.get("id")
        request_id = found if is_id(found) else None
        raise RefusedError(INVALID_REQUEST, "this is not a JSON-RPC 2.0 message", request_id) from None
    return _checked(message, document)


def _checked(message: JSONRPCMessage, document: dict[str, Any]) -> JSONRPCMessage:
    """Returns the message; raises RefusedError for a request whose id cannot be repeated in an answer.

    The notification model accepts an id of any type, so the document itself is checked for one.
    """
    if isinstance(message, JSONRPCNotification) and "id" in document:
        raise RefusedError(INVALID_REQUEST, "the id of a request is a text or a whole number")
    if isinstance(message, JSONRPCRequest) and not is_id(message.id):
        raise RefusedError(INVALID_REQUEST, f"the id of a request has at most {LONGEST_ID} characters")
    return message


MOST_AT_ONCE = 256
"""Requests in progress; further ones are read when one of them is answered."""
REFUSED_FROM = 16 << 20
"""Bytes of unread answers above which requests are refused; input is still read, so that a client that writes before
it reads is not blocked."""
PAUSED_FROM = 64 << 20
"""Bytes of unread answers above which no input is read."""
LONGEST_ANSWER = 8 << 20
LAST_SECONDS = 2.0
"""How long the process waits on exit for the client to read the last answers."""
CHUNK = 1 << 16
LOOK_AGAIN_MS = 100


class JsonRpcWire:
    """Reads requests from one descriptor and writes answers to another."""

    def __init__(self, source: int, sink: int, broken: Callable[[OSError], None]) -> None:
        """`broken` is called in a thread when writing fails."""
        self._source = source
        self._out = LineWriter(sink, most=0, lost=lambda _lines: b"", failed=broken)
        self._open: dict[str | int, int] = {}
        self._changed = Condition()
        self._hung_up = select.poll()
        self._hung_up.register(source, 0)  # no events: reports only hang-ups
        self._reader: Thread | None = None

    def put(self, document: object) -> None:
        """Queues a line that is no message of the protocol."""
        self._out.put(json.dumps(document).encode() + b"\n")

    async def serve(self, run: Callable[[Any, Any], Awaitable[None]]) -> None:
        """Runs a server over the transport until the client closes its end."""
        # no buffer: the reader thread waits until the server takes a message
        incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, sent = anyio.create_memory_object_stream[SessionMessage](0)
        self._reader = Thread(target=self._read, args=(incoming, current_token()), name="reader", daemon=True)

        async def write() -> None:
            async with sent:
                async for item in sent:
                    self._answer(item.message)

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            self._reader.start()
            await run(received, outgoing)

    def close(self) -> None:
        """Ends both threads after `serve`; the caller has shut the connection down. Not in the event loop."""
        self._out.close()
        if self._reader is not None:
            self._reader.join()

    def drain(self) -> None:
        """Waits up to `LAST_SECONDS` for the client to read the answers."""
        self._out.drain(LAST_SECONDS)

    def _answer(self, message: JSONRPCMessage) -> None:
        self._out.put(line_of(message))
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._settle(message.id)

    def _settle(self, request_id: str | int) -> None:
        """Marks a request as done. An id that is used twice counts twice."""
        with self._changed:
            if left := self._open.pop(request_id, 1) - 1:
                self._open[request_id] = left
            self._changed.notify_all()

    def _read(self, incoming: Any, loop: EventLoopToken) -> None:
        # a signal may have ended the server meanwhile, so that the stream has no receiver
        with suppress(RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            try:
                for line in self._lines():
                    self._take(line, incoming, loop)
            finally:
                anyio.from_thread.run_sync(incoming.close, token=loop)

    def _take(self, line: bytes, incoming: Any, loop: EventLoopToken) -> None:
        try:
            message = parse(line)
        except RefusedError as refused:
            self._out.put(line_of(refused.answer))
            return
        if isinstance(message, JSONRPCRequest):
            # answer with an error rather than queueing more work for a client that does not read
            if self._out.waiting > REFUSED_FROM:
                busy = f"{self._out.waiting:,} bytes of answers wait to be read; read them and ask again"
                self._out.put(line_of(refusal(INTERNAL_ERROR, busy, message.id)))
                return
            with self._changed:
                self._open[message.id] = self._open.get(message.id, 0) + 1
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            # a cancelled request gets no answer; at worst one request too many is read ahead
            cancelled = (message.params or {}).get("requestId")
            if isinstance(cancelled, str | int) and cancelled in self._open:
                self._settle(cancelled)
        anyio.from_thread.run(incoming.send, SessionMessage(message), token=loop)

    def _lines(self) -> Iterator[bytes]:
        """Yields the lines of the source and refuses those that are too long."""
        lines = Lines()
        while self._may_go_on() and (chunk := os.read(self._source, CHUNK)):
            yield from self._short(lines.feed(chunk))
        yield from self._short(lines.end())

    def _short(self, lines: Iterator[bytes | TooLong]) -> Iterator[bytes]:
        for line in lines:
            if isinstance(line, TooLong):
                refused = refusal(INVALID_REQUEST, f"a message has at most {LONGEST_LINE:,} bytes", line.request_id)
                self._out.put(line_of(refused))
            elif self._may_go_on():
                yield line

    def _unanswered(self) -> int:
        with self._changed:
            return sum(self._open.values())

    def _may_go_on(self) -> bool:
        """Waits while too much is in progress; returns False if the client has hung up."""
        while self._unanswered() >= MOST_AT_ONCE or self._out.waiting > PAUSED_FROM:
            # the client has closed its end: do not wait for answers it will never read
            if self._hung_up.poll(0):
                return False
            with self._changed:
                self._changed.wait(LOOK_AGAIN_MS / 1000)
        return True


def line_of(message: JSONRPCMessage) -> bytes:
    """The JSON line of a message; unencodable characters are replaced, and an answer that is too long by an error."""
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        line = text.encode()
    except ValueError:  # pydantic's, for values that JSON or UTF-8 cannot represent, such as lone surrogates
        document = message.model_dump(by_alias=True, exclude_unset=True)
        line = json.dumps(document, ensure_ascii=False, default=lambda _: None).encode("utf-8", "replace")
    if len(line) > LONGEST_ANSWER and isinstance(message, JSONRPCResponse | JSONRPCError):
        told = f"the answer would have {len(line):,} bytes; ask for less"
        return line_of(refusal(INTERNAL_ERROR, told, message.id))
    return line + b"\n"
