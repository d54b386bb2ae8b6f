"""Logs as JSON lines on standard error. Queries and memories are content: they stay out unless asked for."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

import structlog

CONTENT = "SPECKIT_LOG_CONTENT"


def configure() -> None:
    """Routes our events and those of the libraries to standard error.

    Must run before the SDK's server object is made: that would otherwise install handlers of its own.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer = structlog.processors.JSONRenderer(ensure_ascii=False)
    structlog.configure(
        processors=[*shared, renderer],
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


def event(name: str, **facts: Any) -> None:
    """Writes one line."""
    structlog.get_logger().info(name, **facts)


def tool_called(tool: str, latency_ms: float, code: str, arguments: dict[str, Any]) -> None:
    """Notes a tool call: how long it took and the code of its failure; the arguments only when content is wanted."""
    content = {"arguments": arguments} if os.environ.get(CONTENT) == "1" else {}
    event("tool", tool=tool, ms=round(latency_ms, 1), outcome=code or "ok", **content)
