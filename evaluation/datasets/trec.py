"""Writes rankings as TREC run lines and judgements as qrels, so that the figures can be recomputed with other tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from speckit_memory.config.files.written_file import check_target, written
from speckit_memory.errors import Problem, SpeckitError

Ranking = Sequence[tuple[str, float]]
"""Document keys with their scores, best first."""


def check_run_file(path: Path, ids: Iterable[str]) -> None:
    """Raises SpeckitError when a run file cannot be written, or an id holds a blank.

    A run line is split at blanks. Call this before the rankings are made.
    """
    _check(path, _is_run, "the run file", ids)


def write_run(path: Path, runs: Mapping[str, Mapping[str, Ranking]]) -> None:
    """Writes the rankings of all pipelines, one after the other: `query Q0 document rank score tag`.

    `runs` maps pipeline to query to ranking; the tag is the name of the pipeline with blanks as underscores. Raises
    SpeckitError when the file cannot be written.
    """
    try:
        with written(path) as file:
            for pipeline, rankings in runs.items():
                tag = "_".join(pipeline.split())
                for query, ranking in rankings.items():
                    file.writelines(_lines(query, ranking, tag))
    except OSError as error:
        raise SpeckitError("E014", f"the run file '{path}' cannot be written: {error.strerror}") from error


def check_qrels_file(path: Path, ids: Iterable[str]) -> None:
    """Raises SpeckitError when judgements cannot be written, or an id holds a blank; as for run files."""
    _check(path, _is_qrels, "the file of judgements", ids)


def write_qrels(path: Path, judgements: Mapping[str, Mapping[str, float]]) -> None:
    """Writes judgements as TREC lines: `query 0 document grade`. Raises SpeckitError when the file cannot be
    written."""
    try:
        with written(path) as file:
            for query, judged in judgements.items():
                file.writelines(f"{query} 0 {key} {grade:g}\n" for key, grade in judged.items())
    except OSError as error:
        raise SpeckitError("E014", f"the file of judgements '{path}' cannot be written: {error.strerror}") from error


def _check(path: Path, is_ours: Callable[[str], bool], what: str, ids: Iterable[str]) -> None:
    problems: list[Problem] = []
    try:
        check_target(path, is_ours, what)
    except SpeckitError as error:
        problems += error.problems
    blank = next((name for name in ids if len(name.split()) != 1), None)
    if blank is not None:
        message = f"the id '{blank}' holds a blank, and the lines of {what} are split at blanks"
        problems.append(Problem("E123", message, actions=(f"leave out {what}", "change the id")))
    if problems:
        raise SpeckitError.of(problems)


def _is_qrels(beginning: str) -> bool:
    """Whether a file is empty or begins with a judgement."""
    cells = beginning.partition("\n")[0].split()
    return not beginning or (len(cells) == 4 and cells[1] == "0")


def _is_run(beginning: str) -> bool:
    """Whether a file is empty or begins with a run line."""
    cells = beginning.partition("\n")[0].split()
    return not beginning or (len(cells) == 6 and cells[1] == "Q0")


def _lines(query: str, ranking: Ranking, tag: str) -> Iterator[str]:
    """The lines of one ranking, with strictly falling scores.

    trec_eval ignores the rank column: it sorts by score in single precision and breaks ties by document id, descending.
    A score that would tie with the one above is therefore written as the next lower single-precision number.
    """
    previous = np.float32(np.inf)
    for rank, (key, score) in enumerate(ranking, start=1):
        previous = min(np.float32(score), np.nextafter(previous, np.float32(-np.inf)))
        yield f"{query} Q0 {key} {rank} {previous} {tag}\n"
