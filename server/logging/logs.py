"""Logs JSON lines to standard error. Queries and memories are content and are logged only if that is switched on.

Logging is configured here only, and only for `serve`. The server logs through structlog; lower layers and libraries use
`logging`, which prints only warnings until it is configured. Both share one chain of processors, so that every line of
a request has its `query_id`, whichever thread writes it.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
import traceback
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, Literal

from speckit_memory.config.workspace.settings import LOG_CONTENT_VARIABLE
from speckit_memory.server.console.failures import DEBUG

CONTENT = LOG_CONTENT_VARIABLE
QUERY_ID = "query_id"
"""The key that links the log lines of a request with each other and with the `_meta` of its answer."""
WORKSPACE = "workspace"
"""The key for the name of the workspace, if a server has several."""
OURS = "speckit_memory"
"""The root of our `logging` loggers."""


@contextmanager
def without_rich() -> Iterator[None]:
    """Prevents the import of `rich` inside the block: it takes 40 ms and the server does not use it.

    structlog and the SDK's server import it if it is installed, and work without it.
    """
    absent = "rich" not in sys.modules
    if absent:
        sys.modules["rich"] = None  # type: ignore[assignment]  # makes the import fail
    try:
        yield
    finally:
        if absent:
            sys.modules.pop("rich", None)  # another thread may have done so


def configure() -> None:
    """Routes our events and those of libraries to standard error.

    Call it before the SDK's server object is created, which would otherwise install its own handlers.
    """
    with without_rich():
        import structlog
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
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
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name, _without_traceback],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger(OURS).setLevel(logging.INFO)


def _without_traceback(_logger: Any, _method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replaces the exception of a library's event by its type; the text may be content. The traceback needs the debug
    variable."""
    found = entry.pop("exc_info", None)
    error = found[1] if isinstance(found, tuple) else found
    if isinstance(error, BaseException):
        entry["error"] = type(error).__name__
        if os.environ.get(DEBUG):
            entry["traceback"] = "".join(traceback.format_exception(error))
    return entry


@contextmanager
def request(workspace: str = "", query_id: str = "") -> Iterator[None]:
    """Adds a request id, a new one unless given, and the `workspace`, to every line logged inside the block."""
    from structlog.contextvars import bound_contextvars

    with about(workspace), bound_contextvars(**{QUERY_ID: query_id or secrets.token_hex(8)}):
        yield


@contextmanager
def about(workspace: str) -> Iterator[None]:
    """Adds the workspace to every line logged inside the block, unless it has no name."""
    from structlog.contextvars import bound_contextvars

    with bound_contextvars(**{WORKSPACE: workspace}) if workspace else nullcontext():
        yield


def query_id() -> str:
    """The id of the current request, "" outside of requests."""
    from structlog.contextvars import get_contextvars

    return str(get_contextvars().get(QUERY_ID, ""))


def content_wanted() -> bool:
    """Whether queries and texts may be logged."""
    return os.environ.get(CONTENT) == "1"


def event(name: str, level: Literal["info", "warning"] = "info", /, **facts: Any) -> None:
    """Logs one line if logging is configured; otherwise structlog would print it to standard output.

    Errors while logging are ignored.
    """
    import structlog

    if structlog.is_configured():
        with suppress(Exception):
            getattr(structlog.get_logger(), level)(name, **facts)


def log_overflow(part: str, rows: int, kept: int, tokens_wanted: int, budget: int) -> None:
    """Logs that an answer exceeded its budget (feature A6).

    Args:
        part: The tool, or the part that cut before it did.
        rows: Number of rows before shortening.
        kept: Number of rows sent (with whole texts, if texts were requested).
        tokens_wanted: Tokens of the unshortened answer.
        budget: The token budget.
    """
    event("overflow", part=part, rows=rows, kept=kept, tokens_wanted=tokens_wanted, budget=budget)


def log_tool_call(
    tool: str, latency_ms: float, code: str, arguments: dict[str, Any], *, cached: bool = False, config_hash: str = ""
) -> None:
    """Logs a tool call.

    Args:
        tool: Name of the tool.
        latency_ms: Duration in milliseconds.
        code: Error code, "" for success.
        arguments: Logged only if content is switched on.
        cached: Whether the answer came from the cache.
        config_hash: Hash of the pipeline that answered, or is in force; "" for none.
    """
    further: dict[str, Any] = {"hash": config_hash} if config_hash else {}
    if cached:
        further["cached"] = True
    if content_wanted():
        further["arguments"] = arguments
    event("tool", tool=tool, ms=round(latency_ms, 1), outcome=code or "ok", **further)
