"""Writes rankings as TREC run lines and judgements as qrels, and reads both from any source.

Problems of a file that is read are reported with their lines (code E123).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from speckit_memory.config.files.paths import is_file
from speckit_memory.config.files.written_file import check_target, written
from speckit_memory.errors import Problem, SpeckitError, Where
from speckit_memory.evaluation.datasets.lines import Problems, finite, lines
from speckit_memory.evaluation.statistics.metrics import relevant

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
    _write(path, "the run file", chain.from_iterable(_run_lines(pipeline, of) for pipeline, of in runs.items()))


def check_qrels_file(path: Path, ids: Iterable[str]) -> None:
    """Raises SpeckitError when judgements cannot be written, or an id holds a blank; as for run files."""
    _check(path, _is_qrels, "the file of judgements", ids)


def write_qrels(path: Path, judgements: Mapping[str, Mapping[str, float]]) -> None:
    """Writes judgements as TREC lines: `query 0 document grade`. Raises SpeckitError when the file cannot be
    written."""
    lines = (f"{query} 0 {key} {grade:g}\n" for query, judged in judgements.items() for key, grade in judged.items())
    _write(path, "the file of judgements", lines)


def _write(path: Path, what: str, lines: Iterable[str]) -> None:
    try:
        with written(path) as file:
            file.writelines(lines)
    except OSError as error:
        raise SpeckitError("E014", f"{what} '{path}' cannot be written: {error.strerror}") from error


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


def _run_lines(pipeline: str, rankings: Mapping[str, Ranking]) -> Iterator[str]:
    tag = "_".join(pipeline.split())
    for query, ranking in rankings.items():
        yield from _lines(query, ranking, tag)


def _lines(query: str, ranking: Ranking, tag: str) -> Iterator[str]:
    """The lines of one ranking, with strictly falling scores.

    trec_eval ignores the rank column: it sorts by score in single precision and breaks ties by document id, descending.
    A score that would tie with the one above is therefore written as the next lower single-precision number.
    """
    previous = np.float32(np.inf)
    for rank, (key, score) in enumerate(ranking, start=1):
        previous = min(np.float32(score), np.nextafter(previous, np.float32(-np.inf)))
        yield f"{query} Q0 {key} {rank} {previous} {tag}\n"


Judgements = Mapping[str, Mapping[str, float]]
"""The grade of each judged document, by query; above 0 is relevant."""

_RUN = "A run file has lines `query Q0 document rank score tag`."
_NO_QRELS = (
    "This is not a qrels file: that has lines `query iteration document grade`, or the table of a dataset's "
    "qrels/test.tsv."
)
_SHOWN = 5
"""Maximum number of listed problems: a wrong file has a problem in every line."""
_BEIR_HEADER = ["query-id", "corpus-id", "score"]


def read_runs(path: Path) -> dict[str, dict[str, Ranking]]:
    """The rankings of a run file by tag and query, in the order of trec_eval.

    A line is `query Q0 document rank score tag`. trec_eval ignores the rank: it sorts by score in single precision,
    ties by document, descending. Raises SpeckitError (E123) with every malformed line.
    """
    problems = Problems(_RUN)
    runs: dict[str, dict[str, dict[str, float]]] = {}
    for where, cells in _cells(path, 6, "query Q0 document rank score tag", problems):
        query, _, document, _, text, tag = cells
        score = finite(text, "score", where, problems)
        rows = runs.setdefault(tag, {}).setdefault(query, {})
        if document in rows:
            problems.add(where, f"'{document}' occurs twice in the ranking of '{query}' by {tag}")
        elif score is not None:
            rows[document] = score
    if not runs and not problems.count:
        problems.add(Where(str(path), 1, 1), "the run file holds no line")
    problems.raise_any()
    return {tag: {query: _ranked(rows) for query, rows in queries.items()} for tag, queries in runs.items()}


def read_qrels(path: Path) -> dict[str, dict[str, float]]:
    """Judgements as TREC lines `query iteration document grade`, or as the table of a BEIR dataset with its header.

    Raises SpeckitError (E123) with every malformed line, and when no document is relevant to any query.
    """
    problems = Problems(_NO_QRELS, _SHOWN)
    judgements: dict[str, dict[str, float]] = {}
    for where, query, document, text in _judged(path, problems):
        grade = finite(text, "grade", where, problems)
        judged = judgements.setdefault(query, {})
        if grade is not None and judged.setdefault(document, grade) != grade:
            message = f"'{document}' is judged twice for '{query}', as {judged[document]:g} and as {grade:g}"
            problems.add(where, message)
    if not problems.count and not any(map(relevant, judgements.values())):
        problems.add(Where(str(path), 1, 1), "no document is relevant to any query (a grade above 0)")
    problems.raise_any()
    return judgements


def _judged(path: Path, problems: Problems) -> Iterator[tuple[Where, str, str, str]]:
    header = False
    for where, line in _read_lines(path, problems):
        cells = line.split("\t") if header else line.split()
        if cells == _BEIR_HEADER and not header:
            header = True
        elif len(cells) == (3 if header else 4):
            yield where, cells[0], cells[-2], cells[-1]
        else:
            wanted = "query-id corpus-id score, separated by tabs" if header else "query iteration document grade"
            problems.add(where, f"a line must be {wanted}; found {line[:80]!r}")


def _cells(path: Path, count: int, form: str, problems: Problems) -> Iterator[tuple[Where, list[str]]]:
    for where, line in _read_lines(path, problems):
        cells = line.split()
        if len(cells) == count:
            yield where, cells
        else:
            problems.add(where, f"a line must be {form}; found {len(cells)} cells in {line[:80]!r}")


def _read_lines(path: Path, problems: Problems) -> Iterator[tuple[Where, str]]:
    if is_file(path):
        yield from lines(path, problems)
    else:
        problems.add(None, f"there is no file '{path}'")


def _ranked(rows: Mapping[str, float]) -> Ranking:
    by_name = sorted(rows.items(), reverse=True)
    return tuple(sorted(by_name, key=lambda row: -np.float32(row[1])))
