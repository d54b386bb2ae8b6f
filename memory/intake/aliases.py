"""Reports files with equal content and links to files, each once: people stop reading a list that repeats."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from speckit_memory.memory.intake.index_report import IndexReport
from speckit_memory.memory.scanning.scanner import below
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.tables.meta import get_meta, set_meta

NAMED = "named_links"
"""Metadata key under which the store keeps the links already reported: pairs of keys, as JSON."""

Link = tuple[str, str]


def equal_contents(hashes: Mapping[str, str], written: Iterable[str], report: IndexReport) -> None:
    """Report each group of keys with equal content if this run wrote one of them, and count the other groups.

    `hashes` maps every key to its content hash; `written` holds the content hashes written in this run.
    """
    groups: dict[str, list[str]] = {}
    for key, digest in hashes.items():
        groups.setdefault(digest, []).append(key)
    new = frozenset(written)
    for digest, keys in groups.items():
        if len(keys) > 1 and digest in new:
            report.aliases.append(tuple(sorted(keys)))
        elif len(keys) > 1:
            report.known_aliases += 1


def links(database: Database, found: Sequence[Link], force: bool, report: IndexReport) -> None:
    """Report the links that no earlier run reported, and count the others.

    Args:
        database: The store that remembers which links were reported.
        found: The links found by this run.
        force: Report all links again.
        report: Receives the links in `aliases` and the count in `known_aliases`.
    """
    known = set() if force else _named_links(get_meta(database.reader(), NAMED))
    new = [link for link in found if link not in known]
    report.aliases += new
    report.known_aliases += len(found) - len(new)


def named_links(connection: Connection) -> set[Link]:
    """Return the links already reported: each is a key and the key of the file at the other end."""
    return _named_links(get_meta(connection, NAMED))


def remember(txn: Transaction, found: Sequence[Link], covered: Sequence[str]) -> None:
    """Record the links as reported, and forget recorded links below the `covered` keys that no longer exist."""
    before = _named_links(get_meta(txn.connection, NAMED))
    after = {*found, *(link for link in before if not any(below(link[1], folder) for folder in covered))}
    if after != before:
        set_meta(txn, NAMED, json.dumps(sorted(after), ensure_ascii=False))


def _named_links(fact: str | None) -> set[Link]:
    return {(first, other) for first, other in json.loads(fact or "[]")}
