"""A tool with a closed input schema whose every failure is an error object."""

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
from speckit_memory.pipeline.process.cancellation import WithdrawnError, require_wanted
from speckit_memory.server.calls.argument_problems import FAR, problems_of
from speckit_memory.server.calls.lenient_arguments import Parameters, told
from speckit_memory.server.calls.unused_parameters import Rule, told_idle
from speckit_memory.server.console.failures import internal
from speckit_memory.server.console.fitting_actions import advice_for_client, for_client
from speckit_memory.server.logging import logs
from speckit_memory.server.replies.answer_cache import AnswerCache
from speckit_memory.server.replies.call_progress import CallProgress
from speckit_memory.server.replies.envelope import SCHEMA, Count, Fitted, Reply, failure, fitted
from speckit_memory.server.replies.worker_calls import EqualCalls, WorkerCall

NOTES_PER_TOKEN = 1
"""Characters of notes on a call for each token of its answer's budget, which leaves them about a quarter of it."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a call is answered with, and what the log says of it."""

    result: CallToolResult
    code: str = ""
    again: bool = False
    pipeline: str = ""


class SpeckitTool(Tool):
    """Runs its function in a worker thread, measures it and wraps its `Reply`.

    Differs from the SDK's tool in three ways: unknown arguments are refused (with the nearest name), none is converted
    silently (hints of the answer name each that was meant in another form), and failures carry a code, a hint and next
    steps.
    """

    _budget: int = PrivateAttr(default=0)
    _limiter: anyio.CapacityLimiter = PrivateAttr()
    _count: Count = PrivateAttr()
    _cache: AnswerCache | None = PrivateAttr(default=None)
    _accepted: Parameters = PrivateAttr()
    _schema: dict[str, Any] = PrivateAttr()
    _whole: dict[str, Any] = PrivateAttr()
    _config_hash: Callable[[], str] = PrivateAttr()
    _offers: Callable[[str], bool] = PrivateAttr()
    _idle: Rule | None = PrivateAttr()
    _defaults: dict[str, Any] = PrivateAttr()
    _equal: Callable[[Mapping[str, Any]], Hashable] | None = PrivateAttr()
    _under_way: EqualCalls[_Answer] = PrivateAttr(default_factory=EqualCalls)

    @classmethod
    def of(
        cls,
        function: Callable[..., Reply],
        *,
        title: str = "",
        budget: int,
        limiter: anyio.CapacityLimiter,
        count: Count,
        read_only: bool,
        idempotent: bool = True,
        destructive: bool = False,
        cache: AnswerCache | None = None,
        config_hash: Callable[[], str] = str,
        offers: Callable[[str], bool] = bool,
        idle: Rule | None = None,
        equal: Callable[[Mapping[str, Any]], Hashable] | None = None,
    ) -> "SpeckitTool":
        """The tool of a function, whose docstring is the description; `title` names it to people.

        `budget` is that of the tool's layer in tokens (feature T24), which `count` counts; `limiter` bounds the threads
        of all tools of a kind; `cache` keeps the answers that may be given again (feature T25); `config_hash` tells the
        log which configuration is in force; `offers` says whether a client has a tool of that name, so that errors can
        send it there; `idle` says which parameters do nothing beside others. Calls under way at once get one answer
        when `equal` returns the same for the values of all their parameters.
        """
        tool = cls.from_function(
            function,
            title=title or None,
            description=inspect.cleandoc(function.__doc__ or ""),
            annotations=_told(read_only=read_only, destructive=destructive, idempotent=idempotent),
            structured_output=False,
        )
        assert isinstance(tool, cls)  # from_function builds the class it is called on
        arguments = tool.fn_metadata.arg_model
        arguments.model_config["extra"] = "forbid"
        arguments.model_config["hide_input_in_errors"] = True
        arguments.model_rebuild(force=True)
        tool._whole = arguments.model_json_schema(by_alias=True)
        tool.parameters = _lean(tool._whole)
        tool.fn_metadata.output_schema = SCHEMA
        tool._schema = tool.parameters
        tool._accepted = Parameters(tool.parameters, destructive=destructive)
        tool._budget = budget
        tool._limiter = limiter
        tool._count = count
        tool._cache = cache
        tool._config_hash = config_hash
        tool._offers = offers
        tool._idle = idle
        tool._equal = equal
        tool._defaults = {name: field.get_default() for name, field in arguments.model_fields.items()}
        return tool

    def saying_less(self, unsaid: Collection[str]) -> "SpeckitTool":
        """The same tool, whose definition is silent about some parameters; it takes them all the same."""
        less = self.model_copy()
        said = {name: schema for name, schema in self._schema["properties"].items() if name not in unsaid}
        less.parameters = self._schema | {"properties": said}
        return less

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> CallToolResult:  # noqa: ARG002 -- the SDK's signature
        """Validates, calls, wraps. Never raises for a failure of the tool."""
        started = time.perf_counter()

        def taken() -> float:
            return (time.perf_counter() - started) * 1000

        def failed(error: SpeckitError) -> _Answer:
            return _Answer(failure(for_client(error, self._offers), self.name, taken()), error.code)

        def answer() -> _Answer:
            # The one boundary, in the thread itself: an exit or an interrupt that a component or a library raises
            # would end the event loop, and with it the server. The thread of a cancelled call ends by itself.
            try:
                with SERVING.serving():
                    found, again = self._answered(arguments)
                    require_wanted()  # what nobody waits for was not served
                    # this too: what follows a reply writes to the store, and the loop must not wait for that
                    return _Answer(found.sent(taken(), again=again), "", again, found.pipeline)
            except SpeckitError as error:
                return failed(error)
            except WithdrawnError:
                return _Answer(CallToolResult(content=[]))  # which nobody reads
            except BaseException as error:  # nothing of a defect reaches the client
                return failed(internal(error))

        call = self._under_way.joined(self._equal_by(arguments), lambda: WorkerCall(answer, self._limiter))
        given = await call.answer(CallProgress(context, "documents"))
        config_hash = given.pipeline or self._config_hash()
        logs.tool_called(self.name, taken(), given.code, arguments, cached=given.again, config_hash=config_hash)
        return given.result.model_copy()  # others may get the same, with a `_meta` of their own

    def _equal_by(self, arguments: dict[str, Any]) -> Hashable | None:
        """What calls under way have in common that get one answer, None where each gets its own."""
        if self._equal is None:
            return None
        try:
            values, notes = self._values(arguments)
            return self._equal(values), tuple(sorted(notes.items()))
        except SpeckitError:
            return None  # of which the call itself tells

    def _answered(self, arguments: dict[str, Any]) -> tuple[Fitted, bool]:
        """The answer within its budget, and whether it had been made before.

        What was read as it was meant gets the answer of what should have been written; notes on it are of this call.
        """
        values, notes = self._values(arguments)

        def made() -> Fitted:
            reply: Reply = self.fn(**values)
            hints = tuple(advice_for_client(hint, self._offers) for hint in reply.hints)
            return fitted(replace(reply, hints=hints), self.name, self._budget, self._count)

        if self._cache is None:
            answer, again = made(), False
        elif values.get("bypassCache"):
            answer, again = self._cache.passing(made)
        else:
            answer, again = self._cache.answered(self.name, values, made)
        most = answer.meta.get("token_budget", 0) * NOTES_PER_TOKEN
        hints = (*told(notes, most), *told_idle(self._idle, values, self._defaults))
        return answer.noted(hints, self._count), again

    def _values(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], Mapping[str, str]]:
        """The arguments of the function, and a note on each that was read as it was meant. Raises SpeckitError with all
        that is wrong with those of the caller."""
        # clients write null for what their user left open; a required one is missing then
        meant = self._accepted.as_meant({name: value for name, value in arguments.items() if value is not None})
        given = meant.arguments
        arguments_of = self.fn_metadata.arg_model
        accepted = arguments_of.model_fields
        surplus = [name for name in given if name not in accepted][LISTED - 1 :]  # the rest in one sentence
        for name in surplus:
            del given[name]
        try:
            # strictly: what may be read in another form has been, and was noted
            return arguments_of.model_validate(given, strict=True).model_dump_one_level(), meant.notes
        except ValidationError as error:
            details = error.errors(include_url=False, include_context=False)
            problems = problems_of(self.name, details, self._whole)
        if surplus:
            problems.append(Problem("E033", f"{self.name} does not have {len(surplus):,} more of the parameters given"))
        raise SpeckitError.of(problems)


def _told(*, read_only: bool, destructive: bool, idempotent: bool) -> ToolAnnotations:
    """The annotations, without those that say what the protocol takes for granted, and what every client does: that a
    tool writes, and that calling it twice is not calling it once. That it may destroy goes without saying as well, and
    is said all the same: there are clients that take nothing said for harmless. Of a tool that only reads, the protocol
    asks for neither of the two that are about changes."""
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
            # a number of things is at least one, which nobody needs to be told
            return schema.get("maximum", FAR) >= FAR or (schema.get("type") == "integer" and item == 1)
        case _:
            return False


def _lean(schema: Any) -> Any:
    """A schema without what only costs tokens: generated titles, defaults that say "not given", null as a spelling of
    that, bounds that nobody comes near, and alternatives of plain types written as such. The bounds hold all the same:
    who exceeds one is told."""
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
