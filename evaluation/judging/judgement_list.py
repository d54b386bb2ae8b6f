"""Labels by question and text, reused for the same pair in any dataset or experiment."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file, read_if_there


def pair_of(question: str, title: str, text: str) -> str:
    """Identifies a pair of a question and a document: a digest of the text that a judge reads."""
    # 32 hexadecimal digits are the first 128 bits of the digest.
    return sha256("\0".join((question, title, text)).encode()).hexdigest()[:32]


def lists_of(question: str, first: Sequence[tuple[str, str]], second: Sequence[tuple[str, str]]) -> str:
    """Identifies a question and two ordered lists of titles and texts that answer it."""
    # "\1" separates the lists: moving a document from one to the other gives another digest.
    shown = (question, *(f"{title}\0{text}" for title, text in first), "\1", *(f"{one}\0{two}" for one, two in second))
    return sha256("\0\0".join(shown).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class JudgementList:
    """A list of labels next to a store, each stored at once. Without a store nothing is stored."""

    name: str
    store: Path | None

    def grades(self) -> Mapping[str, float]:
        """The grades by pair."""
        if self.store is None:
            return {}
        return read_if_there(self.store, lambda database: database.labels(self.name)) or {}

    def put(self, grades: Mapping[str, float], by: str) -> None:
        """Stores the grades of a judge, by pair."""
        if self.store is not None and grades:
            with EvaluationDatabase.open(evaluation_file(self.store)) as database:
                database.label(self.name, grades, by, time.time())

    def remove(self, pair: str, by: str) -> None:
        """Removes a judge's label of a pair."""
        if self.store is not None:
            with EvaluationDatabase.open(evaluation_file(self.store)) as database:
                database.unlabel(self.name, pair, by)
