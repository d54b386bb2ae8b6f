"""`eval make-queries`: turns a dataset into datasets with made queries, one folder for each kind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from speckit_memory.config.files.paths import resolve_path
from speckit_memory.config.files.written_file import written
from speckit_memory.errors import Problem, SpeckitError, nearest
from speckit_memory.evaluation.datasets.dataset import EDGES, QRELS, QUERIES, Dataset, read
from speckit_memory.evaluation.datasets.documents import CORPUS, copy_documents
from speckit_memory.evaluation.made_queries.kinds import KINDS
from speckit_memory.evaluation.made_queries.query_maker import SEED, JudgedQuery, QueryMaker
from speckit_memory.evaluation.statistics.report import Report, ReportFact, as_document

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


def targets(out: Path, kinds: Sequence[str]) -> dict[str, Path]:
    """The folder of each kind: `out` itself for one kind, sub-folders for several."""
    return {kind: out if len(kinds) == 1 else out / kind for kind in kinds}


def check_targets(folders: Iterable[Path], dataset: Path, *, force: bool) -> None:
    """Raises SpeckitError (E014) with every folder that may not be written to.

    A folder with content is refused unless `force`, and the dataset's own folder always. Call this before the queries
    are made.
    """
    problems = []
    for folder in folders:
        actions: tuple[str, ...] = ("give another folder with --out",)
        # A linked folder would be written through, into a dataset elsewhere.
        if (folder / QRELS).parent.is_symlink():
            message = f"'{(folder / QRELS).parent}' is a link: its target would be overwritten"
        elif folder.exists() and not folder.is_dir():
            message = f"'{folder}' is a file; a folder is needed to write the queries to"
        elif resolve_path(folder) == resolve_path(dataset):
            message = f"'{folder}' is the dataset itself, whose own queries would be lost"
        elif not force and folder.is_dir() and any(folder.iterdir()):
            message = f"the folder '{folder}' is not empty"
            actions = (*actions, "overwrite the dataset in it with --force")
        else:
            continue
        problems.append(Problem("E014", message, actions=actions))
    if problems:
        raise SpeckitError.of(problems)


def write(folder: Path, dataset: Path, kind: str, queries: Sequence[JudgedQuery]) -> None:
    """Writes queries with their judgements and a copy of the dataset's documents and edges.

    Args:
        folder: The folder to write to; its dataset files are replaced.
        dataset: The folder of the dataset.
        kind: The kind of query, used in their ids.
        queries: The queries.

    Raises:
        SpeckitError: E014 when the folder cannot be written to.
    """
    clear(folder)
    ids = [f"{kind}-{number:04}" for number in range(1, len(queries) + 1)]
    try:
        (folder / QRELS).parent.mkdir(parents=True, exist_ok=True)
        copy_documents(dataset, folder)
        if (dataset / EDGES).exists():
            shutil.copyfile(dataset / EDGES, folder / EDGES)
        _write_lines(folder / QUERIES, (_query(name, made) for name, made in zip(ids, queries, strict=True)))
        # TREC columns of BEIR: query, document, grade 1; made queries have no other grade.
        judged = (f"{name}\t{key}\t1" for name, made in zip(ids, queries, strict=True) for key in made.relevant)
        _write_lines(folder / QRELS, _headed("query-id\tcorpus-id\tscore", judged))
    except OSError as error:
        raise SpeckitError("E014", f"the folder '{folder}' cannot be written to: {error.strerror}") from error


def clear(folder: Path) -> None:
    """Removes the files of a dataset that will be overwritten. Raises SpeckitError (E014) if that fails."""
    try:
        for name in (CORPUS, QUERIES, QRELS, EDGES):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise SpeckitError("E014", f"the folder '{folder}' cannot be written to: {error.strerror}") from error


def _query(name: str, made: JudgedQuery) -> str:
    metadata: Mapping[str, str | int] = {**made.query.notes, **({"folder": made.folder} if made.folder else {})}
    return json.dumps({"_id": name, "text": made.query.text, "metadata": metadata}, ensure_ascii=False)


def _headed(header: str, lines: Iterable[str]) -> Iterator[str]:
    yield header
    yield from lines


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with written(path) as file:
        file.writelines(f"{line}\n" for line in lines)
