"""Parses a line of standard input as a JSON-RPC message, or builds the error answer."""

from __future__ import annotations

import json
from typing import Any

from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest
from mcp_types.jsonrpc import JSONRPCMessage, jsonrpc_message_adapter
from pydantic import ValidationError
from pydantic_core import from_json

from speckit_memory.errors.echo import abridge
from speckit_memory.server.jsonrpc.lines import LONGEST_ID


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
        request_id = found if _is_id(found) else None
        raise RefusedError(INVALID_REQUEST, "this is not a JSON-RPC 2.0 message", request_id) from None
    return _checked(message, document)


def _checked(message: JSONRPCMessage, document: dict[str, Any]) -> JSONRPCMessage:
    """Returns the message; raises RefusedError for a request whose id cannot be repeated in an answer.

    The notification model accepts an id of any type, so the document itself is checked for one.
    """
    if isinstance(message, JSONRPCNotification) and "id" in document:
        raise RefusedError(INVALID_REQUEST, "the id of a request is a text or a whole number")
    if isinstance(message, JSONRPCRequest) and not _is_id(message.id):
        raise RefusedError(INVALID_REQUEST, f"the id of a request has at most {LONGEST_ID} characters")
    return message


def _is_id(found: object) -> bool:
    if isinstance(found, str):
        return len(found) <= LONGEST_ID
    return isinstance(found, int) and not isinstance(found, bool) and abs(found) < 10**LONGEST_ID
