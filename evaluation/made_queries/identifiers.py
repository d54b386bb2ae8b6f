"""Identifiers: names in code, paths, versions, options and references; also document paths and versions in URLs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import cycle
from random import Random

from speckit_memory.evaluation.made_queries.collection import Collection, Rows
from speckit_memory.evaluation.made_queries.query_maker import MadeQuery, in_turn, shuffle_items

_MOST_DOCUMENTS = 5
_LONGEST = 64
_URL = re.compile(r"\b(?:https?://|www\.)\S+")
_ROOT = "home/ada/project"
_PLACES = ("/{0}/{1}", "/{0}/{1}:42", "file:///{0}/{1}#L42", "C:/{0}/{1}")
_NAMED = re.compile(r"(?:[\w.-]+/)*[\w.-]*[^\W\d_]{2}[\w.-]*")
_VERSION_IN_URL = re.compile(r"(?<=/)(?:v\d+(?:\.\d+)+|\d+(?:\.\d+){2,3})(?=[/#?]|$)")
_FILE_ENDINGS = (
    "bat|c|cc|cfg|conf|cpp|cs|css|csv|dll|exe|go|h|hpp|html|ini|ipynb|java|js|json|jsonl|kt|lock|md|php|proto|ps1|py|"
    "pyi|rb|rs|rst|sh|so|sql|swift|toml|ts|tsv|tsx|txt|whl|xml|ya?ml|zip"
)
_SHAPES = {
    # in prose two hyphens are a dash: a plain word is an option only if it is quoted as one
    "option": r"--[a-z][a-z0-9]*(?:-[a-z0-9]+)+|(?<=[`'\"\[])--[a-z][a-z0-9]+",
    "path": r"\.{0,2}/?[A-Za-z][\w.-]+/(?:[\w.-]*\w/)*[\w.-]*\w\w\.[a-z]{1,5}",
    "file": rf"[A-Za-z_][\w-]+\.(?:{_FILE_ENDINGS})",
    "version": r"v\d+(?:\.\d+)+|\d+(?:\.\d+){2,3}",
    "reference": r"[A-Z][A-Z0-9]*[A-Z]-\d{1,6}",
    # two words joined by a dot are often the end of a sentence: they must be called or quoted
    "dotted": r"[A-Za-z_]\w+(?:\.[A-Za-z_]\w+){2,}"
    r"|[A-Za-z_]\w+\.[A-Za-z]\w+(?=\()|(?<=`)[A-Za-z_]\w+\.[A-Za-z]\w+(?=`)",
    "snake": r"__[A-Za-z]\w*__|_{0,2}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+_{0,2}",
    "camel": r"[A-Za-z][a-z0-9]+(?:[A-Z]+[a-z0-9]+)+[A-Z]*|[a-z]{2,}[A-Z]{2,}|[A-Z]{2,}[a-z]{2,}(?:[A-Z][a-z]+)*",
    "numbered": r"[A-Za-z]{2,}\d{1,4}",
}
_IDENTIFIER = re.compile(
    rf"(?<![\w./\\@:%+=-])(?:{'|'.join(f'(?P<{shape}>{form})' for shape, form in _SHAPES.items())})(?![\w/@:%+=-]|\.\w)"
)


def identifiers(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """Identifiers as written, in at most five documents, all relevant; each shape is equally frequent.

    No other document holds the identifier as part of another one (`ConfigMap` in `ConfigMaps`, `1.2` in `v1.2.1`).
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for text in collection.texts:
        # Addresses are blanked, so that their parts are no identifiers.
        for match in _IDENTIFIER.finditer(_URL.sub(" ", text)):
            if len(match[0]) <= _LONGEST:
                # Folded to find repetitions, the first spelling kept: queries are asked as written.
                found[str(match.lastgroup)].setdefault(match[0].casefold(), match[0])
    written = [list(found[shape].values()) for shape in _SHAPES if shape in found]
    return in_turn([_queries(collection, shuffle_items(of_shape, random)) for of_shape in written])


def versions(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """Versions that are part of a URL, such as `v1.29` in `https://…/v1.29/…`, in at most five documents.

    All documents that hold the version are relevant, in a URL or not; none holds it as part of a longer one.
    """
    urls = (url for text in collection.texts for url in _URL.findall(text))
    found = {match[0] for url in urls for match in _VERSION_IN_URL.finditer(url)}
    # Sorted before shuffling: the order of a set differs between processes.
    return _queries(collection, shuffle_items(sorted(found), random))


def paths(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """The absolute path of a document: plain, with a line, as a URL, or a Windows path, in equal numbers.

    The document is relevant. Documents whose keys are not paths with a name of letters are left out.
    """
    named = [row for row, document in enumerate(collection.documents) if _NAMED.fullmatch(document.key)]
    for row, place in zip(shuffle_items(named, random), cycle(_PLACES), strict=False):
        path = place.format(_ROOT, collection.documents[row].key)
        # "C" marks the Windows form: all separators become backslashes.
        yield MadeQuery(path.replace("/", "\\") if path[0] == "C" else path, (row,))


def _queries(collection: Collection, drawn: Sequence[str]) -> Iterator[MadeQuery]:
    for identifier in drawn:
        rows = _documents(collection, identifier)
        if 0 < len(rows) <= _MOST_DOCUMENTS:
            yield MadeQuery(identifier, rows)


def _documents(collection: Collection, identifier: str) -> Rows:
    """The documents that hold an identifier by itself; empty when any document holds it only as a part."""
    folded = identifier.casefold()
    if folded[0] == "v" and folded[1:2].isdigit():
        folded = folded[1:]  # the release v1.2.3 is 1.2.3
    held = []
    for row, text in enumerate(collection.folded):
        if folded in text:
            held.append(row)
            if len(held) > _MOST_DOCUMENTS:
                return ()
    # No letter, digit, point or hyphen before it and no continuation after it; a leading "v" is accepted.
    alone = re.compile(rf"(?<![\w.-])v?{re.escape(folded)}(?![\w-]|\.\w)")
    return tuple(held) if all(alone.search(collection.folded[row]) for row in held) else ()
