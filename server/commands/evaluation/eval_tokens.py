"""`eval tokens`: measures how much relevant content reaches an agent per token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from speckit_memory.evaluation.tokens.recall_per_token import Answerer, SentAnswer
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.arguments.sources import pipelines_option, source_options
from speckit_memory.server.console.markdown import TEXT_FIELD
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.operations.mcp_tools import reply_of
from speckit_memory.server.operations.search import SEARCH, ToolSearch, search_view
from speckit_memory.server.replies.answer_form import SHIPPED_FORM, AnswerForm
from speckit_memory.server.replies.envelope import fit_to_budget
from speckit_memory.server.reports.terminal import show_reports
from speckit_memory.server.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from speckit_memory.engine import Memory
    from speckit_memory.evaluation.datasets.dataset import DatasetQuery
    from speckit_memory.evaluation.ground_truth.ground import GroundSource
    from speckit_memory.evaluation.statistics.report import Report


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


@click.command("tokens")
@click.option(
    "--budget",
    "budgets",
    type=click.IntRange(200, 100_000),
    multiple=True,
    metavar="TOKENS",
    help=f"Tokens that an answer may take; may be repeated. Else {', '.join(map(str, BUDGETS))}.",
)
@pipelines_option("A pipeline; may be repeated. Else the one that a search would use.")
@click.option(
    "--form",
    "forms",
    multiple=True,
    metavar="FORM",
    help="A form of the answer, such as excerpt=200,rows=20,why=short; may be repeated. Else the default one.",
)
@click.option("--no-peers", is_flag=True, help="Leave out the two simpler memories.")
@click.option("--queries", type=click.IntRange(min=1), help="Only a sample of this many queries.")
@shared_options("db", "set", "json", "verbose")
@source_options(several=True, or_else_bundled=True)
def command(
    common: Common,
    sources: tuple[GroundSource, ...],
    budgets: tuple[int, ...],
    pipelines: tuple[str, ...],
    forms: tuple[str, ...],
    no_peers: bool,
    queries: int | None,
) -> None:
    """Measure how much relevant content reaches an agent within a token budget.

    Every query of a dataset, by default of the one that ships, is answered as the tool memory_search answers it, once
    for each budget. The first pipeline and form is compared with every other one, and with two simpler memories that
    send the best passages in order: by FTS5 alone and by vectors alone.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        sources: Where queries and judgements come from.
        budgets: Tokens that an answer may take; none for the usual ones.
        pipelines: Pipelines to measure; none for the one that a search would use.
        forms: Forms of the answer; none for the default one.
        no_peers: Whether the two simpler memories are left out.
        queries: Size of a sample of the queries; None for all.
    """
    from speckit_memory.evaluation.tokens.run import measure_tokens

    chosen = tuple(AnswerForm.parsed(form) for form in dict.fromkeys(forms)) or (AnswerForm(),)

    def measured() -> Iterator[Report]:
        for source in sources:
            with ProgressReporter(source.name) as bar:
                report = measure_tokens(
                    source,
                    pipelines,
                    ToolAnswers(chosen),
                    budgets=budgets or BUDGETS,
                    peers=not no_peers,
                    queries=queries,
                    overrides=common.overrides,
                    progress=lambda now: bar.update(now.done, now.total, now.phase),
                )
            yield report.as_report()

    show_reports(measured(), common)
