"""What the demo searches: the project's own documents, and questions whose answers are known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from speckit_memory.errors import SpeckitError

HERE = Path(__file__).resolve().parent
FOLDERS = (HERE / "demo", HERE.parent / "docs")
"""The copy inside an installed package; the repository's own folder."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the key of the document that answers it, relative to the corpus."""

    text: str
    expected: str


QUESTIONS: tuple[Question, ...] = (
    Question("why is memory mapping switched off?", "decisions/0003-no-mmap.md"),
    Question("why is the pipeline not a general graph of steps?", "decisions/0001-four-fixed-stages.md"),
    Question("are scores fused, or ranks?", "decisions/0004-fuse-by-score.md"),
    Question("what happens to blocks in causalLinks", "decisions/0006-link-vocabulary.md"),
    Question("do chunks have ids of their own?", "decisions/0002-one-id-sequence.md"),
    Question("which frozen columns flow between the stages?", "datamodel.md"),
)


def corpus() -> Path:
    """The folder of the documents. Raises E010 when an installation lost them."""
    for folder in FOLDERS:
        if folder.is_dir():
            return folder
    looked = " and ".join(f"'{folder}'" for folder in FOLDERS)
    raise SpeckitError("E010", f"the documents of the demo are missing: looked in {looked}", actions=("install again",))
