"""Logs as JSON lines on standard error. Queries and memories are content: they stay out unless asked for.

The one place where logging is configured, and by `serve` alone. The server writes events through structlog; the rooms
below and the libraries write through the standard library, which says nothing below a warning until it is configured
here. Both end in one chain, so that every line of a request carries its `query_id`, in whichever thread it is written.
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
"""What ties the lines of a request to one another, and to its answer, whose `_meta` has it too."""
WORKSPACE = "workspace"
"""The name of the workspace that a line is about, where a server has several."""
OURS = "speckit_memory"
"""The logger of the standard library above all of ours."""


@contextmanager
def without_rich() -> Iterator[None]:
    """Keeps `rich`, where it happens to be installed, from being imported: it is never used and costs 40 ms.

    structlog and the SDK's server object look for it, and do without it when there is none.
    """
    absent = "rich" not in sys.modules
    if absent:
        sys.modules["rich"] = None  # type: ignore[assignment]  # Python's own sign for "cannot be imported"
    try:
        yield
    finally:
        if absent:
            del sys.modules["rich"]


def configure() -> None:
    """Routes our events and those of the libraries to standard error.

    Must run before the SDK's server object is made: that would otherwise install handlers of its own.
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
    """Names the error of a library's event; its text may be content, and its traceback is for who asked for it."""
    found = entry.pop("exc_info", None)
    error = found[1] if isinstance(found, tuple) else found
    if isinstance(error, BaseException):
        entry["error"] = type(error).__name__
        if os.environ.get(DEBUG):
            entry["traceback"] = "".join(traceback.format_exception(error))
    return entry


@contextmanager
def request(workspace: str = "") -> Iterator[None]:
    """Gives a request an id of its own, which every line written inside the block carries, with the `workspace`."""
    from structlog.contextvars import bound_contextvars

    with about(workspace), bound_contextvars(**{QUERY_ID: secrets.token_hex(8)}):
        yield


@contextmanager
def about(workspace: str) -> Iterator[None]:
    """Has every line that is written inside the block name the workspace, unless that has no name."""
    from structlog.contextvars import bound_contextvars

    with bound_contextvars(**{WORKSPACE: workspace}) if workspace else nullcontext():
        yield


def query_id() -> str:
    """The id of the request that is being served, empty outside of any."""
    from structlog.contextvars import get_contextvars

    return str(get_contextvars().get(QUERY_ID, ""))


def content_wanted() -> bool:
    """Whether queries and texts may stand in the log."""
    return os.environ.get(CONTENT) == "1"


def event(name: str, level: Literal["info", "warning"] = "info", /, **facts: Any) -> None:
    """Writes one line, unless nothing was configured: structlog would print it to standard output then.

    Nothing is ever lost for a line that cannot be written.
    """
    import structlog

    if structlog.is_configured():
        with suppress(Exception):
            getattr(structlog.get_logger(), level)(name, **facts)


def overflowed(part: str, rows: int, kept: int, tokens_wanted: int, budget: int) -> None:
    """Notes that an answer did not fit (feature A6): how many rows it had, how many of them stayed (whole, where texts
    were asked for), and what all would have taken. `part` is the tool, or what cut before it did."""
    event("overflow", part=part, rows=rows, kept=kept, tokens_wanted=tokens_wanted, budget=budget)


def tool_called(
    tool: str, latency_ms: float, code: str, arguments: dict[str, Any], *, cached: bool = False, config_hash: str = ""
) -> None:
    """Notes a tool call: how long it took, the code of its failure, whether its answer had been made before, and the
    hash of the pipeline that answered or was in force, if one was; the arguments only when content is wanted."""
    further: dict[str, Any] = {"hash": config_hash} if config_hash else {}
    if cached:
        further["cached"] = True
    if content_wanted():
        further["arguments"] = arguments
    event("tool", tool=tool, ms=round(latency_ms, 1), outcome=code or "ok", **further)
