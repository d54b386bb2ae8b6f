"""Answers the queries of a dataset with `memory_search`, called directly instead of through a client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from speckit_memory.evaluation.tokens.recall_per_token import Answerer, SentAnswer
from speckit_memory.server.replies.answer_form import SHIPPED_FORM, AnswerForm
from speckit_memory.server.replies.envelope import TEXT_FIELD, fitted
from speckit_memory.server.tools import search
from speckit_memory.server.workspace.workspace import Workspace

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.evaluation.datasets.dataset import DatasetQuery

TOOL = "memory_search"


class SingleMemoryWorkspace(Workspace):
    """A workspace around an open memory that is only queried."""

    def __init__(self, memory: Memory) -> None:
        """`memory` is not closed here; its owner closes it."""
        super().__init__(lambda _create: memory, memory.settings)
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
        name = memory.pipeline.name
        return [_answerer(memory, form, f"{name} {form}" if len(self.forms) > 1 else name) for form in self.forms]


def _answerer(memory: Memory, form: AnswerForm, name: str) -> Answerer:
    tool = search.build(SingleMemoryWorkspace(memory), form)

    def answer(query: DatasetQuery, budget: int) -> SentAnswer:
        # no deadline: answers must not depend on the load of the machine
        reply = tool(query=query.text, specFolder=query.folder, tokenBudget=budget, deadlineMs=0)
        made = fitted(reply, TOOL, budget, memory.count_tokens)  # not `sent`: no use is recorded
        rows = made.document["data"]["results"]
        texts = tuple((row["key"], row.get(TEXT_FIELD, "")) for row in rows)
        return SentAnswer(texts, made.meta["token_count"])

    return Answerer(name, answer)
