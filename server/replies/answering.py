"""What the server does for a request that is no tool call: in a worker thread, and every failure an error of the
protocol that carries our error object."""

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
"""The exit status by which an error tells that something else was to be asked."""


class Answering:
    """Runs work for requests in threads that `limiter` bounds, together with those of the tools that only read.

    `offers` says whether the client has a tool of that name.
    """

    def __init__(self, limiter: anyio.CapacityLimiter, offers: Callable[[str], bool] = bool) -> None:
        self._limiter = limiter
        self._offers = offers

    async def run(self, work: Callable[[], Found], **about: str) -> Found:
        """What `work` returns. Raises MCPError for whatever it raises; `about` stands in its data, such as the URI.

        When the client takes the request back, the work ends before its next step.
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
                raise MCPError(code=INTERNAL_ERROR, message="taken back") from None  # which nobody reads
            except BaseException as error:
                raise as_protocol_error(internal(error), **about) from None

        return await WorkerCall(answer, self._limiter).answer()


def as_protocol_error(error: SpeckitError, **about: str) -> MCPError:
    """The error of the protocol for one of ours: -32602 where the client is to ask for something else."""
    code = INVALID_PARAMS if error.exit_status == CALLERS_FAULT else INTERNAL_ERROR
    message = "; ".join(f"{problem.code} {problem.message}" for problem in error.problems)
    return MCPError(code=code, message=message, data={**about, **error.as_json()})


def refuse(message: str, **about: Any) -> NoReturn:
    """Raises the protocol's error for parameters that mean nothing here."""
    raise MCPError(code=INVALID_PARAMS, message=message, data=about or None)
