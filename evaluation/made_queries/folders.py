"""Writes made queries as datasets in the BEIR layout, one folder for each kind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from speckit_memory.config.files.paths import resolve_path
from speckit_memory.config.files.written_file import written
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.evaluation.datasets.dataset import EDGES, QRELS, QUERIES
from speckit_memory.evaluation.datasets.documents import CORPUS, copy_documents
from speckit_memory.evaluation.made_queries.query_maker import JudgedQuery


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
