"""`eval tokens`: measures how much relevant content reaches an agent per token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from speckit_memory.evaluation.tokens.recall_per_token import Answerer, SentAnswer
from speckit_memory.server.console.markdown import TEXT_FIELD
from speckit_memory.server.operations.evaluation.sources import (
    BY_USER,
    Pipelines,
    Sample,
    SeveralSources,
    chosen_sources,
    measuring,
)
from speckit_memory.server.operations.fields import Flag
from speckit_memory.server.operations.mcp_tools import reply_of
from speckit_memory.server.operations.operation import Option, View, operation
from speckit_memory.server.operations.search import SEARCH, ToolSearch, search_view
from speckit_memory.server.replies.answer_form import SHIPPED_FORM, AnswerForm
from speckit_memory.server.replies.envelope import fit_to_budget
from speckit_memory.server.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from speckit_memory.engine import Memory
    from speckit_memory.evaluation.datasets.dataset import DatasetQuery
    from speckit_memory.evaluation.statistics.report import Report
    from speckit_memory.server.operations.command_line import CommandCall


class SingleMemoryWorkspace(Workspace):
    """A workspace around an open memory that is only queried."""

    def __init__(self, memory: Memory) -> None:
        """`memory` is not closed here; its owner closes it."""
        super().__init__(lambda _create: memory, memory.session.settings)
        self._memory = memory

    def memory(self, create: bool = False) -> Memory:  # noqa: ARG002 -- it is there
        """The memory, without a server's background work."""
        assert self._memory is not None
        return self._memory


@dataclass(frozen=True, slots=True)
class ToolAnswers:
    """Answers through the tool, once per answer form."""

    forms: tuple[AnswerForm, ...] = (SHIPPED_FORM,)

    def __call__(self, memory: Memory) -> list[Answerer]:
        """The answerers for a memory, named after its pipeline and, if there are several, their forms."""
        name = memory.pipelines.current.name
        return [_answerer(memory, form, f"{name} {form}" if len(self.forms) > 1 else name) for form in self.forms]


def _answerer(memory: Memory, form: AnswerForm, name: str) -> Answerer:
    workspace = SingleMemoryWorkspace(memory)

    def answer(query: DatasetQuery, budget: int) -> SentAnswer:
        # no deadline: answers must not depend on the load of the machine
        asked = ToolSearch(query=query.text, folder=query.folder, token_budget=budget, deadline_ms=0)
        reply = reply_of(search_view(workspace, asked, form))
        made = fit_to_budget(reply, SEARCH.name, budget, memory.models.count_tokens)  # not `sent`: no use is recorded
        rows = made.document["data"]["results"]
        texts = tuple((row["key"], row.get(TEXT_FIELD, "")) for row in rows)
        return SentAnswer(texts, made.meta["token_count"])

    return Answerer(name, answer)


BUDGETS = (500, 1000, 2000)
"""The budgets that are measured by default, in tokens of an answer."""


class TokenMeasurement(SeveralSources):
    budgets: Annotated[
        list[Annotated[int, Field(strict=True, ge=200, le=100_000)]],
        Option(
            f"Tokens that an answer may take, else {', '.join(map(str, BUDGETS))}.",
            command="--budget",
            metavar="TOKENS",
        ),
    ] = []
    pipelines: Pipelines = []
    forms: Annotated[
        list[str],
        Option(
            "A form of the answer, such as excerpt=200,rows=20,why=short, else the default one.",
            command="--form",
            metavar="FORM",
        ),
    ] = []
    no_peers: Annotated[Flag, Option("Leave out the two simpler memories.")] = False
    queries: Sample = None


@operation("tuning", "eval tokens", one_door=BY_USER, shared=("db", "set", "json", "verbose"))
def measure_budgets(call: CommandCall, params: TokenMeasurement) -> View:
    """Measure how much relevant content reaches an agent within a token budget.

    Every query of a dataset, by default of the one that ships, is answered as the tool memory_search answers it, once
    for each budget. The first pipeline and form is compared with every other one, and with two simpler memories that
    send the best passages in order: by FTS5 alone and by vectors alone.
    """
    from speckit_memory.evaluation import bundled
    from speckit_memory.evaluation.tokens.run import measure_tokens

    if not (params.datasets or params.own or params.from_use):
        params = params.model_copy(update={"datasets": [bundled.FOLDER]})
    chosen = tuple(AnswerForm.parsed(form) for form in dict.fromkeys(params.forms)) or (AnswerForm(),)

    def measured() -> Iterator[Report]:
        for source in chosen_sources(params, call.common.db):
            with measuring(source.name) as progress:
                report = measure_tokens(
                    source,
                    params.pipelines,
                    ToolAnswers(chosen),
                    budgets=params.budgets or BUDGETS,
                    peers=not params.no_peers,
                    queries=params.queries,
                    overrides=call.common.overrides,
                    progress=progress,
                )
            yield report.as_report()

    return View(reports=measured())
