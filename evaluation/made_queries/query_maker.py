"""`eval make-queries`: makes queries of the requested kinds from a set of documents (feature E3, phase A)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from random import Random
from typing import TypeVar

from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.datasets.documents import DatasetDocument
from speckit_memory.evaluation.made_queries.collection import Collection, Rows
from speckit_memory.evaluation.made_queries.kinds import KINDS

SEED = 20
"""The default seed."""


Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class MadeQuery:
    """A query and the rows of its relevant documents; `notes` become metadata of the query."""

    text: str
    relevant: Rows
    notes: Mapping[str, str | int] = field(default_factory=dict)


Derive = Callable[[Collection, Random], Iterator[MadeQuery]]
"""Yields queries until the documents are exhausted; the same ones for the same seed."""


def shuffle_items(items: Iterable[Item], random: Random) -> list[Item]:
    """The items in random order."""
    drawn = list(items)
    random.shuffle(drawn)
    return drawn


def in_turn(sources: Iterable[Iterator[Item]]) -> Iterator[Item]:
    """Takes one item of each source in turn until all are exhausted, so that short sources do not limit long ones."""
    waiting = deque(sources)
    while waiting:
        source = waiting.popleft()
        for item in source:
            yield item
            # an exhausted source is not put back
            waiting.append(source)
            break


def derive(kind: str) -> Derive:
    """The function that makes queries of a kind (a key of `KINDS`)."""
    function: Derive = getattr(import_module(f"{__package__}.{KINDS[kind].module}"), kind)
    return function


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A made query with the folder to search in ("" for all) and the keys of its relevant documents."""

    query: MadeQuery
    folder: str
    relevant: tuple[str, ...]


class QueryMaker:
    """Makes queries from documents of any origin: a dataset, or the user's memories.

    With `scoped`, each query is about the documents of one folder and searches in it; documents without a folder are
    ignored. Raises SpeckitError (E125) when no document has a folder.
    """

    def __init__(self, documents: Iterable[DatasetDocument], *, scoped: bool, seed: int = SEED) -> None:
        self._seed = seed
        everything = list(documents)
        if scoped:
            folders = sorted({document.folder for document in everything} - {""})
            if not folders:
                message = "no document is in a folder, and each query searches one folder"
                raise SpeckitError("E125", message, actions=("ask about all documents: --scope corpus",))
            self._scopes = {folder: Collection(_within(everything, folder)) for folder in folders}
        else:
            self._scopes = {"": Collection(everything)}

    def make(self, kind: str, count: int) -> list[JudgedQuery]:
        """Makes `count` queries of a kind (a key of `KINDS`) in random order, or as many as there are.

        The result depends on the documents and the seed alone. Folders contribute in turn; a query occurs once per
        folder.
        """
        return list(islice(in_turn([self._of(kind, folder) for folder in self._scopes]), count))

    def _of(self, kind: str, folder: str) -> Iterator[JudgedQuery]:
        collection, taken = self._scopes[folder], set[str]()
        # a separate generator per kind and folder: adding a kind changes no other
        for query in derive(kind)(collection, Random(f"{self._seed} {kind} {folder}")):
            if query.text.casefold() not in taken:
                taken.add(query.text.casefold())
                yield JudgedQuery(query, folder, tuple(collection.documents[row].key for row in query.relevant))


def _within(documents: Sequence[DatasetDocument], folder: str) -> list[DatasetDocument]:
    """The documents that a search in this folder covers, including sub-folders."""
    return [document for document in documents if f"{document.folder}/".startswith(f"{folder}/")]
