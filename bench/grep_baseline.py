"""Word counting as grep does it, measured as a baseline: `python -m bench.grep_baseline DATASET...`.

A document scores one for each distinct word of the query that it contains, whole and in lower case; ties go to the
smaller key. There are no weights, no stemming and no fields. A query with a folder searches that folder alone.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from pathlib import Path

from speckit_memory.evaluation import bundled
from speckit_memory.evaluation.datasets.dataset import Dataset, DatasetQuery, read
from speckit_memory.evaluation.datasets.documents import documents
from speckit_memory.evaluation.datasets.lines import Problems
from speckit_memory.evaluation.statistics.metrics import DEPTH, evaluate, relevant

_WORD = re.compile(r"\w+")


def rankings(dataset: Dataset, queries: list[DatasetQuery]) -> list[list[str]]:
    """The best documents of each query, by the number of its words that they contain."""
    holders: dict[str, set[str]] = defaultdict(set)
    folders: dict[str, str] = {}
    for _, document in documents(dataset.folder, Problems()):
        folders[document.key] = document.folder
        for word in _words(f"{document.title}\n{document.text}"):
            holders[word].add(document.key)
    return [_ranking(query, holders, folders) for query in queries]


def _ranking(query: DatasetQuery, holders: dict[str, set[str]], folders: dict[str, str]) -> list[str]:
    counts: dict[str, int] = defaultdict(int)
    for word in _words(query.text):
        for key in holders.get(word, ()):
            counts[key] += query.folder in ("", folders[key])
    matches = [key for key, count in counts.items() if count]
    return sorted(matches, key=lambda key: (-counts[key], key))[:DEPTH]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def folder_of(name: str) -> Path:
    """The folder of a dataset, named as the command line names it."""
    return bundled.FOLDER if name == bundled.NAME else Path(name)


def main() -> None:
    """Print the mean nDCG@10 of each dataset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", type=folder_of, nargs="+", help="Folders in the BEIR layout, or `bundled`.")
    for folder in parser.parse_args().datasets:
        dataset = read(folder)
        queries = [query for query in dataset.queries if relevant(dataset.judgements.get(query.id, {}))]
        scores = evaluate(rankings(dataset, queries), [dataset.judgements[query.id] for query in queries])
        print(f"{folder.name}: nDCG@10 {scores['nDCG@10'].mean():.4f} over {len(queries)} queries")


if __name__ == "__main__":
    main()
