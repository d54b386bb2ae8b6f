"""`eval make-queries`: turns a dataset into datasets with made queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.evaluation.datasets.dataset import Dataset, read
from speckit_memory.evaluation.made_queries.folders import check_targets, clear, targets, write
from speckit_memory.evaluation.made_queries.kinds import KINDS
from speckit_memory.evaluation.made_queries.query_maker import SEED, QueryMaker
from speckit_memory.evaluation.statistics.document import as_document
from speckit_memory.evaluation.statistics.report import Report, ReportFact

Scope = Literal["auto", "corpus", "folder"]


@dataclass(frozen=True, slots=True)
class MadeKind:
    """The number of queries made of a kind, and their folder; None if there are none.

    `reason` says why there are fewer than requested, "" otherwise.
    """

    kind: str
    queries: int
    folder: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class MakingReport:
    """The queries made from a dataset. `asked` is the requested number of each kind."""

    dataset: str
    documents: int
    scope: Literal["corpus", "folder"]
    seed: int
    asked: int
    kinds: tuple[MadeKind, ...]

    def as_report(self) -> Report:
        """The number of queries of each kind, and their folder."""
        scope = "" if self.scope == "corpus" else ", each query within one folder"
        return Report(
            f"{self.dataset}: {self.documents:,} documents{scope}, seed {self.seed}",
            facts=[
                ReportFact(
                    made.kind,
                    f"{made.queries:,} of {self.asked:,} queries{f'  {made.folder}' if made.folder else ''}",
                    made.reason,
                )
                for made in self.kinds
            ],
            data=as_document(self),
        )


def make_queries(
    dataset: Path,
    out: Path,
    kinds: Sequence[str] = (),
    *,
    queries: int = 200,
    seed: int = SEED,
    scope: Scope = "auto",
    force: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> MakingReport:
    """Makes queries of each kind from the documents of a dataset and writes them to `out`.

    Args:
        dataset: The folder of the dataset.
        out: The folder to write to; several kinds get a sub-folder each.
        kinds: The kinds to make; none for all.
        queries: Number of queries of each kind.
        seed: Seeds the random choices.
        scope: "folder" makes queries that search one folder, "corpus" all documents; "auto" is "folder" if all queries
            of the dataset search a folder.
        force: Overwrites folders that are not empty.
        progress: Called with the kind, the number of kinds done, and the total.

    Raises:
        SpeckitError: E123 for a malformed dataset, E014 for the folders, E030 for an unknown kind, E125 if no query
            could be made.
    """
    chosen = list(dict.fromkeys(kinds)) or list(KINDS)
    for kind in chosen:
        if kind not in KINDS:
            raise SpeckitError("E030", f"'{kind}' is not a kind of query; {nearest(kind, KINDS)}")
    folders = targets(out, chosen)
    check_targets(folders.values(), dataset, force=force)
    source = read(dataset, judged=False)
    scoped = scope == "folder" or (scope == "auto" and _all_in_folders(source))
    maker = QueryMaker(source.corpus(), scoped=scoped, seed=seed)
    made = []
    for number, kind in enumerate(chosen):
        if progress is not None:
            progress(kind, number, len(chosen))
        found = maker.make(kind, queries)
        if found:
            write(folders[kind], dataset, kind, found)
        else:
            clear(folders[kind])
        reason = "" if len(found) == queries else f"there is no further {KINDS[kind].asks_for}"
        made.append(MadeKind(kind, len(found), str(folders[kind]) if found else None, reason))
    if not any(kind.queries for kind in made):
        reasons = "; ".join(f"{kind.kind}: {kind.reason}" for kind in made)
        raise SpeckitError("E125", f"no query could be made from '{dataset}': {reasons}")
    return MakingReport(source.name, len(source.keys), "folder" if scoped else "corpus", seed, queries, tuple(made))


def _all_in_folders(dataset: Dataset) -> bool:
    return bool(dataset.queries) and all(query.folder for query in dataset.queries)
