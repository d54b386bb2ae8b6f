"""What the demo searches: the project's own documents, and questions whose answers are known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from config.errors import SpeckitError

HERE = Path(__file__).resolve().parent
FOLDERS = (HERE / "demo", HERE.parent / "docs")
"""The copy inside an installed package; the repository's own folder."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the key of the document that answers it, relative to the corpus."""

    text: str
    expected: str


QUESTIONS: tuple[Question, ...] = (Question("why is memory mapping switched off?", "decisions/0003-no-mmap.md"),)


def corpus() -> Path:
    """The folder of the documents. Raises E010 when an installation lost them."""
    for folder in FOLDERS:
        if folder.is_dir():
            return folder
    looked = " and ".join(f"'{folder}'" for folder in FOLDERS)
    raise SpeckitError("E010", f"the documents of the demo are missing: looked in {looked}", actions=("install again",))
