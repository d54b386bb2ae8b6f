"""An MCP tool with a closed input schema; every failure becomes an error object."""

import inspect
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import anyio
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import PrivateAttr, ValidationError

from speckit_memory.engine.background.gate import SERVING
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.errors.echo import LISTED
from speckit_memory.pipeline.isolation.wire import EndedError
from speckit_memory.pipeline.process.cancellation import WithdrawnError, require_wanted
from speckit_memory.server.calls.argument_problems import FAR, problems_of
from speckit_memory.server.calls.lenient_arguments import LenientParameters, coercion_hints
from speckit_memory.server.calls.unused_parameters import Rule, told_idle
from speckit_memory.server.calls.worker_processes import Elsewhere
from speckit_memory.server.console.failures import internal
from speckit_memory.server.console.fitting_actions import advice_for_client, for_client
from speckit_memory.server.logging import logs
from speckit_memory.server.replies.answer_cache import AnswerCache
from speckit_memory.server.replies.call_progress import CallProgress
from speckit_memory.server.replies.envelope import SCHEMA, BudgetedReply, Count, Reply, failure, fit_to_budget
from speckit_memory.server.replies.worker_calls import EqualCalls, WorkerCall

NOTES_PER_TOKEN = 1
"""Characters of coercion notes per token of the budget, which limits them to about a quarter of the answer."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The result of a call with the facts for its log entry."""

    result: CallToolResult
    code: str = ""
    again: bool = False
    pipeline: str = ""


class SpeckitTool(Tool):
    """Runs its function in a worker thread, measures it and wraps its `Reply`.

    Differs from the SDK's tool in three ways: unknown arguments are refused (with the nearest name), no argument is
    converted silently (hints name each coerced one), and failures carry a code, a hint and next steps.
    """

    _budget: int = PrivateAttr(default=0)
    _limiter: anyio.CapacityLimiter = PrivateAttr()
    _count: Count = PrivateAttr()
    _cache: AnswerCache | None = PrivateAttr(default=None)
    _accepted: LenientParameters = PrivateAttr()
    _whole: dict[str, Any] = PrivateAttr()
    _config_hash: Callable[[], str] = PrivateAttr()
    _offers: Callable[[str], bool] = PrivateAttr()
    _idle: Rule | None = PrivateAttr()
    _defaults: dict[str, Any] = PrivateAttr()
    _equal: Callable[[Mapping[str, Any]], Hashable] | None = PrivateAttr()
    _elsewhere: Elsewhere | None = PrivateAttr()
    _under_way: EqualCalls[ToolAnswer] = PrivateAttr()

    def bound(
        self,
        function: Callable[..., Reply],
        *,
        budget: int,
        limiter: anyio.CapacityLimiter,
        count: Count,
        cache: AnswerCache | None = None,
        config_hash: Callable[[], str] = str,
        offers: Callable[[str], bool] = bool,
        idle: Rule | None = None,
        equal: Callable[[Mapping[str, Any]], Hashable] | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> "SpeckitTool":
        """Builds a tool of this definition.

        Args:
            function: Returns the `Reply` for its keyword arguments.
            budget: Token budget of the tool's layer (feature T24).
            limiter: Bounds the threads of all tools of a kind.
            count: Counts tokens.
            cache: Caches answers (feature T25); None for no cache.
            config_hash: Returns the hash of the pipeline in force, for the log.
            offers: Tells whether the client has a tool, so that errors suggest only those.
            idle: Finds parameters without effect.
            equal: Returns a key for parameter values; concurrent calls with equal keys share one answer.
            elsewhere: Answers calls in another process; None to answer them here.
        """
        tool = self.model_copy(update={"fn": function})
        tool._budget = budget
        tool._limiter = limiter
        tool._count = count
        tool._cache = cache
        tool._config_hash = config_hash
        tool._offers = offers
        tool._idle = idle
        tool._equal = equal
        tool._elsewhere = elsewhere
        tool._under_way = EqualCalls()
        return tool

    @classmethod
    def defined(
        cls,
        function: Callable[..., Reply],
        *,
        title: str = "",
        read_only: bool,
        idempotent: bool = True,
        destructive: bool = False,
    ) -> "SpeckitTool":
        """Derives the definition from a signature and a docstring; as in click, a form feed ends the description.

        Args:
            function: Has the parameters of the tool.
            title: Name for users.
            read_only: Whether the tool never writes.
            idempotent: Whether repeating a call has no further effect.
            destructive: Whether it may delete or overwrite.
        """
        annotations = _annotations(read_only=read_only, destructive=destructive, idempotent=idempotent)
        tool = cls.from_function(
            function,
            title=title or None,
            description=inspect.cleandoc(function.__doc__ or "").partition("\f")[0].rstrip(),
            annotations=annotations,
            structured_output=False,
        )
        assert isinstance(tool, cls)  # from_function builds the class it is called on
        arguments = tool.fn_metadata.arg_model
        arguments.model_config["extra"] = "forbid"
        # rejected values are content and must not appear in errors
        arguments.model_config["hide_input_in_errors"] = True
        arguments.model_rebuild(force=True)
        tool._whole = tool.parameters | {"additionalProperties": False}  # generating it once more takes a millisecond
        tool.parameters = _lean(tool._whole)
        tool.fn_metadata.output_schema = SCHEMA
        tool._accepted = LenientParameters(tool.parameters, destructive=bool(annotations.destructive_hint))
        tool._defaults = {name: field.get_default() for name, field in arguments.model_fields.items()}
        return tool

    def saying_less(self, unsaid: Collection[str]) -> "SpeckitTool":
        """A copy whose definition omits some parameters, which it still accepts."""
        less = self.model_copy()
        said = {name: schema for name, schema in self.parameters["properties"].items() if name not in unsaid}
        less.parameters = self.parameters | {"properties": said}
        return less

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> CallToolResult:  # noqa: ARG002 -- the SDK's signature
        """Validates the arguments, calls the function and wraps its reply. Never raises for a failure of the tool."""
        started = time.perf_counter()

        def answer() -> ToolAnswer:
            if self._elsewhere is not None:
                try:
                    with SERVING.serving():
                        given: ToolAnswer | None = self._elsewhere(self.name, arguments)
                    if given is not None:
                        return given
                except WithdrawnError:
                    return ToolAnswer(CallToolResult(content=[]))
                except EndedError as error:
                    return self._failed(internal(error), started)
            return self.answer(arguments)

        # equal concurrent calls wait for the same work, such as one index run
        call = self._under_way.joined(self._equal_by(arguments), lambda: WorkerCall(answer, self._limiter))
        given = await call.answer(CallProgress(context, "documents"))
        config_hash = given.pipeline or self._config_hash()
        taken = (time.perf_counter() - started) * 1000
        logs.log_tool_call(self.name, taken, given.code, arguments, cached=given.again, config_hash=config_hash)
        return given.result.model_copy()  # calls may share a result, but each gets its own `_meta`

    def answer(self, arguments: dict[str, Any]) -> ToolAnswer:
        """Validates the arguments, calls the function and wraps its reply, in this thread. Never raises."""
        started = time.perf_counter()
        # The one boundary, inside the thread: an exit or interrupt raised by a component or library would end the
        # event loop and the server. The thread of a cancelled call ends by itself.
        try:
            with SERVING.serving():
                found, again = self._answered(arguments)
                require_wanted()  # a cancelled call must not count as served
                # in the thread, too: `sent` may write to the store, which must not block the event loop
                sent = found.sent((time.perf_counter() - started) * 1000, again=again)
                return ToolAnswer(sent, "", again, found.pipeline)
        except SpeckitError as error:
            return self._failed(error, started)
        except WithdrawnError:
            return ToolAnswer(CallToolResult(content=[]))  # not sent: the call was cancelled
        except BaseException as error:  # clients do not see the text of defects
            return self._failed(internal(error), started)

    def _failed(self, error: SpeckitError, started: float) -> ToolAnswer:
        taken = (time.perf_counter() - started) * 1000
        return ToolAnswer(failure(for_client(error, self._offers), self.name, taken), error.code)

    def _equal_by(self, arguments: dict[str, Any]) -> Hashable | None:
        """The key by which concurrent calls share an answer; None if each gets its own."""
        if self._equal is None:
            return None
        try:
            values, notes = self._values(arguments)
            return self._equal(values), tuple(sorted(notes.items()))
        except SpeckitError:
            return None  # the call itself reports it

    def _answered(self, arguments: dict[str, Any]) -> tuple[BudgetedReply, bool]:
        """The answer within its budget, and whether it came from the cache.

        Coerced arguments share the cache entry of their canonical form; coercion notes are added per call.
        """
        values, notes = self._values(arguments)

        def made() -> BudgetedReply:
            reply: Reply = self.fn(**values)
            hints = tuple(advice_for_client(hint, self._offers) for hint in reply.hints)
            reply = reply if hints == reply.hints else replace(reply, hints=hints)
            return fit_to_budget(reply, self.name, self._budget, self._count)

        if self._cache is None:
            answer, again = made(), False
        elif values.get("bypassCache"):
            answer, again = self._cache.passing(made)
        else:
            answer, again = self._cache.answered(self.name, values, made)
        most = answer.meta.get("token_budget", 0) * NOTES_PER_TOKEN
        hints = (*coercion_hints(notes, most), *told_idle(self._idle, values, self._defaults))
        return answer.noted(hints, self._count), again

    def _values(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], Mapping[str, str]]:
        """The validated arguments of the function, and notes on the coerced ones. Raises SpeckitError with all
        problems."""
        # clients send null for "not given"; a required parameter is then reported as missing
        meant = self._accepted.as_meant({name: value for name, value in arguments.items() if value is not None})
        given = meant.arguments
        arguments_of = self.fn_metadata.arg_model
        accepted = arguments_of.model_fields
        surplus = [name for name in given if name not in accepted][LISTED - 1 :]  # the rest are counted below
        for name in surplus:
            del given[name]
        try:
            # strict, since coercion has been done above and noted
            return arguments_of.model_validate(given, strict=True).model_dump_one_level(), meant.notes
        except ValidationError as error:
            details = error.errors(include_url=False, include_context=False)
            problems = problems_of(self.name, details, self._whole)
        if surplus:
            problems.append(Problem("E033", f"{self.name} does not have {len(surplus):,} more of the parameters given"))
        raise SpeckitError.of(problems)


def _annotations(*, read_only: bool, destructive: bool, idempotent: bool) -> ToolAnnotations:
    """Builds the annotations without those that equal the protocol's defaults (not read-only, not idempotent).

    `destructive` is always given for tools that write: it is true by default, but some clients take a missing hint for
    harmless. For read-only tools the protocol ignores the hints on changes.
    """
    if read_only:
        return ToolAnnotations(read_only_hint=True, open_world_hint=False)
    return ToolAnnotations(destructive_hint=destructive, idempotent_hint=idempotent or None, open_world_hint=False)


def _is_surplus(key: str, item: Any, schema: dict[str, Any]) -> bool:
    match key:
        case "title":
            return isinstance(item, str)
        case "default":
            return item in (None, "", [], False) or item == schema.get("minimum")
        case "additionalProperties":
            return item is True
        case "minLength" | "maxLength" | "maxItems":
            return isinstance(item, int)
        case "maximum":
            return isinstance(item, int) and item >= FAR
        case "minimum":
            # counts are at least one, which needs no mention
            return schema.get("maximum", FAR) >= FAR or (schema.get("type") == "integer" and item == 1)
        case _:
            return False


def _lean(schema: Any) -> Any:
    """Removes the parts of a schema that only cost tokens: generated titles, defaults and null for "not given", and
    bounds that are never reached; unions of plain types become type lists. The validation still enforces all bounds."""
    if isinstance(schema, list):
        return [_lean(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    lean = {
        key: ({name: _lean(value) for name, value in item.items()} if key == "properties" else _lean(item))
        for key, item in schema.items()
        if not _is_surplus(key, item, schema)
    }
    if "anyOf" in lean:
        options = [option for option in lean.pop("anyOf") if option != {"type": "null"}]
        if len(options) == 1:
            return options[0] | lean
        if all(set(option) == {"type"} for option in options):
            return {"type": [option["type"] for option in options]} | lean
        lean["anyOf"] = options
    return lean
