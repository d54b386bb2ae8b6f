"""What `memory_search` sends for the queries of a dataset: the tool itself, without a client around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from speckit_memory.evaluation.tokens.recall_per_token import Answerer, Sent
from speckit_memory.server.replies.answer_form import SHIPPED_FORM, AnswerForm
from speckit_memory.server.replies.envelope import TEXT_FIELD, fitted
from speckit_memory.server.tools import search
from speckit_memory.server.workspace.workspace import Workspace

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.evaluation.datasets.dataset import DatasetQuery

TOOL = "memory_search"


class OfOneMemory(Workspace):
    """A workspace of a memory that is open already, which nothing is done to beside being asked."""

    def __init__(self, memory: Memory) -> None:
        """`memory` stays open; whoever opened it closes it."""
        super().__init__(lambda _create: memory, memory.settings)
        self._memory = memory

    def memory(self, create: bool = False) -> Memory:  # noqa: ARG002 -- it is there
        """The memory, without the background work of a server."""
        assert self._memory is not None
        return self._memory


@dataclass(frozen=True, slots=True)
class ThroughTheTool:
    """The ways in which the tool answers: one for every form."""

    forms: tuple[AnswerForm, ...] = (SHIPPED_FORM,)

    def __call__(self, memory: Memory) -> list[Answerer]:
        """Those through the pipeline of a memory, called after it and, of several, after their forms."""
        name = memory.pipeline.name
        return [_answerer(memory, form, f"{name} {form}" if len(self.forms) > 1 else name) for form in self.forms]


def _answerer(memory: Memory, form: AnswerForm, name: str) -> Answerer:
    tool = search.build(OfOneMemory(memory), form)

    def answer(query: DatasetQuery, budget: int) -> Sent:
        # no deadline: what is sent does not depend on how busy the machine is
        reply = tool(query=query.text, specFolder=query.folder, tokenBudget=budget, deadlineMs=0)
        made = fitted(reply, TOOL, budget, memory.count_tokens)  # and not sent: nothing is noted
        rows = made.document["data"]["results"]
        texts = tuple((row["key"], row.get(TEXT_FIELD, "")) for row in rows)
        return Sent(texts, made.meta["token_count"])

    return Answerer(name, answer)
