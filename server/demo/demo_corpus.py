"""The demo's corpus: the project's documents, and questions with known answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation import bundled

if TYPE_CHECKING:
    from speckit_memory.memory.intake.source import Source


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question and the key of the document that answers it."""

    text: str
    expected: str


QUESTIONS: tuple[DemoQuestion, ...] = (
    DemoQuestion("why is memory mapping switched off?", "docs/decisions/0003-no-mmap.md"),
    DemoQuestion("why is the pipeline not a general graph of steps?", "docs/decisions/0001-four-fixed-stages.md"),
    DemoQuestion("are scores fused, or ranks?", "docs/decisions/0004-fuse-by-score.md"),
    DemoQuestion("what happens to blocks in causalLinks", "docs/decisions/0006-link-vocabulary.md"),
    DemoQuestion("do chunks have ids of their own?", "docs/decisions/0002-one-id-sequence.md"),
    DemoQuestion("which frozen columns flow between the stages?", "docs/datamodel.md"),
)


def corpus() -> list[Source]:
    """The documents. Raises E010 if the installation lacks them."""
    from speckit_memory.evaluation.datasets.documents import MARKDOWN, documents
    from speckit_memory.evaluation.datasets.lines import Problems
    from speckit_memory.evaluation.measuring.temporary_store import source_of

    problems = Problems()
    found = [
        source_of(document)
        for _, document in documents(bundled.FOLDER, problems)
        if document.key.startswith(f"{MARKDOWN}/")
    ]
    problems.raise_any()
    if found:
        return found
    missing = f"the documents of the demo are missing: '{bundled.FOLDER / 'docs'}'"
    raise SpeckitError("E010", missing, actions=("install again",))
