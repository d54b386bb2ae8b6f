"""Datasets for measurement in the BEIR layout (Thakur et al., NeurIPS Datasets 2021).

`corpus.jsonl` and `queries.jsonl` (`_id`, `title`, `text`, `metadata`), `qrels/test.tsv` (`query-id corpus-id score`)
and, beyond BEIR, an optional `edges.tsv` (`source relation target strength`) with the causal links between documents.
Markdown files below a folder `docs` may replace `corpus.jsonl`; their paths (`docs/…`) are their ids, and the lines of
a file `memories.jsonl` are further documents. Metadata keys understood: on a document `folder`, `tier`, `triggers`,
`created_at`; on a query `folder` (the folder to search in), `mode`, `intent` and `category`. Other keys are ignored.

Documents and queries are identified by their `_id` throughout; row ids of a store never enter a dataset.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from os.path import lexists
from pathlib import Path
from typing import cast, get_args

from speckit_memory.config.files.paths import is_file, resolve_path
from speckit_memory.engine.answers.request import MAX_QUERY_CHARACTERS, normalised_folder
from speckit_memory.errors import Where, nearest
from speckit_memory.evaluation import bundled
from speckit_memory.evaluation.datasets.documents import CORPUS, MARKDOWN, DatasetDocument, documents, has_documents
from speckit_memory.evaluation.datasets.lines import Problems, finite, json_records, table_rows
from speckit_memory.evaluation.statistics.metrics import relevant
from speckit_memory.memory.store.records import Relation
from speckit_memory.pipeline.model.columns import Mode

QUERIES, QRELS, EDGES = "queries.jsonl", "qrels/test.tsv", "edges.tsv"
UNANSWERABLE = "hard_negative"
"""The category, in the files of datasets, of a query that sounds answerable but has no answer among the documents."""


@dataclass(frozen=True, slots=True)
class DatasetQuery:
    """One query. `folder` is the folder to search in, "" for all; `mode` the search mode; `intent` the intent assigned
    by a person, "" for none.

    Only the category `UNANSWERABLE` has a meaning: such a query has no answer among the documents.
    """

    id: str
    text: str
    folder: str = ""
    intent: str = ""
    category: str = ""
    mode: Mode = "auto"


@dataclass(frozen=True, slots=True)
class Dataset:
    """A valid dataset. The documents stay in their file: `corpus` reads them one by one.

    `keys` holds the keys of all documents; `judgements` maps query id to document key to grade, above 0 for relevant.
    `edges` are (source, relation, target, strength) with the strength in [0, 1].
    """

    folder: Path
    keys: frozenset[str]
    queries: tuple[DatasetQuery, ...]
    judgements: Mapping[str, Mapping[str, float]]
    edges: tuple[tuple[str, str, str, float], ...] = ()

    @property
    def name(self) -> str:
        """The name of its folder."""
        return resolve_path(self.folder).name

    def corpus(self) -> Iterator[DatasetDocument]:
        """All documents, in the order of the file. Raises SpeckitError when the file has become invalid since
        `read`."""
        problems = Problems()
        for _, document in documents(self.folder, problems):
            yield document
        problems.raise_any()

    def judged(self) -> tuple[DatasetQuery, ...]:
        """The queries that have a relevant document; the metrics are defined for these alone."""
        return tuple(query for query in self.queries if relevant(self.judgements.get(query.id, {})))

    def unanswerable(self) -> tuple[DatasetQuery, ...]:
        """The queries that have deliberately no answer; an answer to them should carry a warning."""
        answered = {query.id for query in self.judged()}
        return tuple(query for query in self.queries if query.category == UNANSWERABLE and query.id not in answered)


def read(folder: Path, *, judged: bool = True) -> Dataset:
    """Reads a dataset. Raises SpeckitError (E123) with every malformed line of every file, by file and line.

    Without `judged` only the documents are required: queries and judgements may be absent.
    """
    problems = Problems()
    missing = [] if has_documents(folder) else [f"{CORPUS} and no folder {MARKDOWN} of Markdown files"]
    missing += [name for name in (QUERIES, QRELS) if judged and not is_file(folder / name)]
    if missing and not lexists(folder) and (close := get_close_matches(folder.name, [bundled.NAME], cutoff=0.7)):
        problems.add(None, f"there is no folder '{folder}'; did you mean '{close[0]}', the dataset that ships?")
        problems.raise_any()
    for name in missing:
        all_needed = f"a dataset needs {CORPUS}, {QUERIES} and {QRELS}" if judged else "the documents are needed"
        problems.add(None, f"'{folder}' has no file {name}; {all_needed}")
    if missing:
        problems.raise_any()
    keys = _keys(folder, problems)
    queries = _queries(folder, problems) if judged or lexists(folder / QUERIES) else {}
    judgements = _judgements(folder, keys, queries, problems) if judged or lexists(folder / QRELS) else {}
    edges = tuple(_edges(folder, keys, problems)) if lexists(folder / EDGES) else ()
    problems.raise_any()
    return Dataset(folder, frozenset(keys), tuple(queries.values()), judgements, edges)


def _keys(folder: Path, problems: Problems) -> dict[str, int]:
    """The line of each document key; checks every document."""
    keys: dict[str, int] = {}
    for where, document in documents(folder, problems):
        _claim(document.key, where, keys, problems)
    return keys


def _queries(folder: Path, problems: Problems) -> dict[str, DatasetQuery]:
    queries: dict[str, DatasetQuery] = {}
    taken: dict[str, int] = {}
    for record in json_records(folder / QUERIES, problems):
        metadata = record.record("metadata")
        query = DatasetQuery(
            id=record.text("_id", required=True),
            text=record.text("text", required=True),
            folder=normalised_folder(metadata.text("folder")),
            intent=metadata.text("intent"),
            category=metadata.text("category"),
            mode=cast(Mode, metadata.text("mode") or "auto"),
        )
        if query.mode not in get_args(Mode):
            metadata.report(f"'metadata.mode' is '{query.mode}'; {nearest(query.mode, get_args(Mode))}")
        if len(query.text) > MAX_QUERY_CHARACTERS:
            record.report(f"the query has {len(query.text):,} characters; a query may have {MAX_QUERY_CHARACTERS:,}")
        elif query.text and not any(character.isalnum() for character in query.text):
            record.report(f"the query {query.text[:80]!r} contains no letter or digit")
        if _claim(query.id, record.where, taken, problems):
            queries[query.id] = query
    return queries


def _claim(name: str, where: Where, taken: dict[str, int], problems: Problems) -> bool:
    """Registers an id; a duplicate is reported. False for a duplicate or an empty id."""
    if name in taken:
        problems.add(where, f"the id '{name}' is already used in line {taken[name]}")
        return False
    if name:
        taken[name] = where.line
    return bool(name)


def _judgements(
    folder: Path, keys: Container[str], queries: Container[str], problems: Problems
) -> dict[str, dict[str, float]]:
    judgements: dict[str, dict[str, float]] = {}
    path = folder / QRELS
    for where, (query, key, score) in table_rows(path, ("query-id", "corpus-id", "score"), problems):
        # `&` instead of `and`: report both unknown ids
        known = _check_known(query, queries, QUERIES, where, problems) & _check_known(
            key, keys, CORPUS, where, problems
        )
        grade = finite(score, "score", where, problems)
        if not known or grade is None:
            continue
        judged = judgements.setdefault(query, {})
        if judged.setdefault(key, grade) != grade:
            problems.add(where, f"'{key}' is judged twice for '{query}', as {judged[key]:g} and as {grade:g}")
    return judgements


def _edges(folder: Path, keys: Container[str], problems: Problems) -> Iterator[tuple[str, str, str, float]]:
    taken: dict[tuple[str, str, str], int] = {}
    for where, cells in table_rows(folder / EDGES, ("source", "relation", "target", "strength"), problems):
        source, relation, target, text = cells
        before = problems.count
        _check_known(source, keys, CORPUS, where, problems)
        _check_known(target, keys, CORPUS, where, problems)
        strength = finite(text, "strength", where, problems)
        if relation not in tuple(Relation):
            problems.add(where, f"'{relation}' is not a relation; {nearest(relation, Relation)}")
        if strength is not None and not 0 <= strength <= 1:
            problems.add(where, f"the strength is {text}; accepted: 0 to 1")
        if source == target:
            problems.add(where, f"'{source}' is linked to itself")
        # the line of the first edge with these ends and relation
        first = taken.setdefault((source, relation, target), where.line)
        if first != where.line:
            problems.add(where, f"this edge is already in line {first}")
        if strength is not None and problems.count == before:
            yield source, relation, target, strength


def _check_known(name: str, names: Container[str], file: str, where: Where, problems: Problems) -> bool:
    if name not in names:
        problems.add(where, f"the id '{name}' is not in {file}")
    return name in names
