"""Copies of a dataset whose documents are linked as their own texts refer to one another.

`python -m bench.references DATASET FOLDER` writes one: the dataset and an `edges.tsv` of the links that it has, and of
those that texts make. Which document a text means is told by what documents of its kind are called:

- `pep-0008`: PEP 8, PEP-8, pep-0008;
- `sig-node/1287-in-place-update`: its path, KEP-1287, KEP #1287, and the address of its issue; a number that two
  documents bear tells neither;
- `docs/saving.md`: a Markdown link that leads there from the document it stands in.

The same dataset always gives the same links. Nothing but documents is read: no query, no judgement.
"""

from __future__ import annotations

import argparse
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from speckit_memory.evaluation import bundled
from speckit_memory.evaluation.datasets.dataset import EDGES, QRELS, QUERIES, Dataset, read
from speckit_memory.evaluation.datasets.documents import DatasetDocument, copy_documents
from speckit_memory.memory.store.records import Relation
from speckit_memory.memory.store.tables.graph.edges import EDGES_PER_NODE

Edge = tuple[str, str, str, float]
"""Source, relation, target, strength."""

OFTEN = 2
"""A text that names another so often rests on it (`derived_from`); a single mention is support."""
_WORDED = re.compile(r"([a-z]+)-0*(\d+)")
_NUMBERED = re.compile(r"(?:[^/]+/)*0*(\d+)-[^/]+")
_OF_WORDED = r"\b(?:{words})[ -]?0*(\d{{1,5}})\b"
_OF_NUMBERED = re.compile(r"\bKEP[ -]?#?0*(\d{1,5})\b|/enhancements/(?:issues|pull)/(\d+)\b", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w-])[a-z][\w-]*/\d+-[\w.-]*\w")
_MARKDOWN_LINK = re.compile(r"\]\(\s*<?([^)\s#>]+)")


class Linked(NamedTuple):
    """The links of a copy, those that the dataset has first, and how many found no room beside their neighbours'."""

    edges: tuple[Edge, ...]
    declared: int
    left_out: int


def mentions(documents: Iterable[DatasetDocument], keys: frozenset[str]) -> Counter[tuple[str, str]]:
    """How often the text of a document (first) names another."""
    named = naming(keys)
    found: Counter[tuple[str, str]] = Counter()
    for document in documents:
        found.update((document.key, other) for other in named(document) if other != document.key)
    return found


def naming(keys: frozenset[str]) -> Callable[[DatasetDocument], Iterator[str]]:
    """Tells which of the documents a text names, as often as it does."""
    worded = {(match[1], int(match[2])): key for key in sorted(keys) if (match := _WORDED.fullmatch(key))}
    numbers = Counter(int(match[1]) for key in keys if (match := _NUMBERED.fullmatch(key)))
    numbered = {
        number: key
        for key in sorted(keys)
        if (match := _NUMBERED.fullmatch(key)) and numbers[number := int(match[1])] == 1
    }
    words = sorted({word for word, _ in worded})
    of_worded = re.compile(_OF_WORDED.format(words="|".join(words)), re.IGNORECASE) if words else None

    def named(document: DatasetDocument) -> Iterator[str]:
        if of_worded:
            for match in of_worded.finditer(document.text):
                word = re.match("[a-z]+", match[0].lower())
                if word and (other := worded.get((word[0], int(match[1])))):
                    yield other
        if numbered:
            yield from (path for path in _PATH.findall(document.text) if path in keys)
            for match in _OF_NUMBERED.finditer(document.text):
                if other := numbered.get(int(match[1] or match[2])):
                    yield other
        folder = posixpath.dirname(document.key)
        for target in _MARKDOWN_LINK.findall(document.text):
            if (other := posixpath.normpath(posixpath.join(folder, target))) in keys:
                yield other

    return named


def linked(dataset: Dataset) -> Linked:
    """The links that a dataset has and those of its texts, the most frequent first, at most `EDGES_PER_NODE` of each.

    The strength of n mentions is n / (n + 1). Two documents that are linked are not linked again in that direction.
    """
    edges = list(dataset.edges)
    ends = Counter(end for source, _, target, _ in edges for end in (source, target))
    taken = {(source, target) for source, _, target, _ in edges}
    found = mentions(dataset.corpus(), dataset.keys)
    left_out = 0
    for (source, target), often in sorted(found.items(), key=lambda item: (-item[1], item[0])):
        if (source, target) in taken:
            continue
        if max(ends[source], ends[target]) >= EDGES_PER_NODE:
            left_out += 1
            continue
        ends.update((source, target))
        relation = Relation.DERIVED_FROM if often >= OFTEN else Relation.SUPPORTS
        edges.append((source, relation.value, target, round(often / (often + 1), 3)))
    return Linked(tuple(edges), len(dataset.edges), left_out)


def write(source: Path, target: Path) -> Linked:
    """Writes the copy into a folder that is not there yet."""
    dataset = read(source)
    found = linked(dataset)
    (target / QRELS).parent.mkdir(parents=True)
    copy_documents(source, target)
    for name in (QUERIES, QRELS):
        (target / name).write_bytes((source / name).read_bytes())
    lines = ["source\trelation\ttarget\tstrength", *("\t".join(map(str, edge)) for edge in found.edges)]
    (target / EDGES).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes a copy, and says how dense it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path, help="a folder in the BEIR layout, or 'bundled'")
    parser.add_argument("folder", type=Path, help="where the copy is written; must not exist")
    chosen = parser.parse_args(arguments)
    if chosen.folder.exists():
        parser.error(f"'{chosen.folder}' exists already")
    source = bundled.FOLDER if str(chosen.dataset) == bundled.NAME else chosen.dataset
    found = write(source, chosen.folder)
    documents = len(read(chosen.folder).keys)
    print(
        f"{documents:,} documents, {len(found.edges):,} links ({found.declared:,} declared), "
        f"{len(found.edges) / documents:.2f} per document; {found.left_out:,} left out"
    )


if __name__ == "__main__":
    main()
