"""A source of queries, judgements and a store: a dataset, or the user's own memories."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from speckit_memory.config.files.regular_file import reading
from speckit_memory.evaluation.datasets.dataset import EDGES, Dataset, DatasetQuery, read
from speckit_memory.evaluation.datasets.documents import DatasetDocument, document_files
from speckit_memory.evaluation.measuring.measure import Opener, throwaway_store

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """Queries with their judgements, and how to open the store that holds the documents.

    `digest` (16 hex digits) covers documents, queries and judgements; two evaluations may be paired query by query only
    if their digests are equal. `documents` may be read once. `unanswerable` are queries without an answer in the store.
    `warnings` are sentences on the limits of figures from this source. `by_use`: the judgements are uses of earlier
    answers, so no pipeline can be shown to be worse than the one that was served.
    """

    dataset: Dataset
    opened: Opener
    digest: str
    documents: Iterable[DatasetDocument]
    unanswerable: tuple[DatasetQuery, ...] = ()
    warnings: tuple[str, ...] = ()
    by_use: bool = False


class GroundSource(Protocol):
    """Names a source to measure on, before anything is read."""

    @property
    def name(self) -> str:
        """The name shown in progress bars."""

    def ground(self, environ: Mapping[str, str]) -> GroundTruth:
        """Reads the source. Raises SpeckitError with every problem."""


@dataclass(frozen=True, slots=True)
class DatasetSource:
    """A dataset in the BEIR layout, indexed into a throw-away store."""

    folder: Path

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.name

    def ground(self, environ: Mapping[str, str]) -> GroundTruth:  # noqa: ARG002 -- a dataset does not depend on it
        """Reads the dataset. Raises SpeckitError (E123), see `dataset.read`."""
        dataset = read(self.folder)
        content = digest(dataset, _files(self.folder))
        return GroundTruth(dataset, throwaway_store, content, dataset.corpus(), unanswerable=dataset.unanswerable())


def digest(dataset: Dataset, content: Iterator[bytes]) -> str:
    """The digest of the documents, given as bytes in pieces of any size, and of the queries and judgements."""
    total = sha256()
    for piece in content:
        total.update(piece)
    queries = sorted((query.id, query.text, query.folder) for query in dataset.queries)
    judged = sorted((query, sorted(grades.items())) for query, grades in dataset.judgements.items())
    total.update(json.dumps([queries, judged]).encode())
    return total.hexdigest()[:16]


def _files(folder: Path) -> Iterator[bytes]:
    for path in (*document_files(folder), folder / EDGES):
        if path.is_file():
            with reading(path) as file:
                yield from iter(lambda: file.read(_CHUNK), b"")
