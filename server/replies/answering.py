"""Runs requests other than tool calls in worker threads; each failure becomes a protocol error with our error
object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import anyio
from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from speckit_memory.engine.background.gate import SERVING
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.process.cancellation import WithdrawnError
from speckit_memory.server.console.failures import internal
from speckit_memory.server.console.fitting_actions import for_client
from speckit_memory.server.replies.worker_calls import WorkerCall

Found = TypeVar("Found")
CALLERS_FAULT = 2
"""The exit status of errors that the caller can correct by changing the request."""


class WorkerPool:
    """Runs the work of requests in threads; they share `limiter` with the read-only tools.

    `offers` tells whether the client has a tool of a given name.
    """

    def __init__(self, limiter: anyio.CapacityLimiter, offers: Callable[[str], bool] = bool) -> None:
        self._limiter = limiter
        self._offers = offers

    async def run(self, work: Callable[[], Found], **about: str) -> Found:
        """Returns the result of `work`, and turns every exception into an MCPError whose data includes `about` (such as
        the URI).

        When the client cancels the request, the work ends before its next step.
        """

        def answer() -> Found:
            # the one boundary, in the thread itself: an exit or an interrupt would end the event loop
            try:
                with SERVING.serving():
                    return work()
            except MCPError:
                raise
            except SpeckitError as error:
                raise as_protocol_error(for_client(error, self._offers), **about) from None
            except WithdrawnError:
                raise MCPError(code=INTERNAL_ERROR, message="cancelled") from None  # not sent to anyone
            except BaseException as error:
                raise as_protocol_error(internal(error), **about) from None

        return await WorkerCall(answer, self._limiter).answer()


def as_protocol_error(error: SpeckitError, **about: str) -> MCPError:
    """The protocol error for one of ours: -32602 (invalid params) when the client has to change its request."""
    code = INVALID_PARAMS if error.exit_status == CALLERS_FAULT else INTERNAL_ERROR
    message = "; ".join(f"{problem.code} {problem.message}" for problem in error.problems)
    return MCPError(code=code, message=message, data={**about, **error.as_json()})


def refuse(message: str, **about: Any) -> NoReturn:
    """Raises the protocol error for invalid parameters."""
    raise MCPError(code=INVALID_PARAMS, message=message, data=about or None)
