"""Answers of tools as parts of a prompt."""

from __future__ import annotations

from typing import Any

from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, TextContent

from speckit_memory.errors.codes import CODES


def text_of(answer: CallToolResult) -> str:
    """The Markdown of an answer, with stored text safely quoted. Raises MCPError for a failure."""
    if answer.is_error:
        error = error_of(answer)
        code = INVALID_PARAMS if CODES[error["code"]].callers_fault else INTERNAL_ERROR
        raise MCPError(code=code, message=f"{error['code']} {error['message']}", data=answer.structured_content)
    return "\n".join(block.text for block in answer.content if isinstance(block, TextContent))


def error_of(answer: CallToolResult) -> dict[str, Any]:
    """The error object of a failed answer."""
    found: dict[str, Any] = (answer.structured_content or {})["error"]
    return found
