"""Files that hold the same, and which of them a report has named before: a list that repeats is no longer read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from speckit_memory.memory.intake.index_report import IndexReport
from speckit_memory.memory.scanning.scanner import below
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.tables.meta import get_meta, set_meta

NAMED = "named_links"
"""The store's fact that says which links to a file have been named: pairs of keys, as JSON."""

Link = tuple[str, str]


def equal_contents(hashes: Mapping[str, str], written: Iterable[str], report: IndexReport) -> None:
    """Names the groups of keys with equal content, one of which was written in this run, and counts the others.

    `hashes` are the contents by key, `written` those of this run.
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
    """Names the links that no earlier run has named, all with `force`, and counts the others."""
    known = set() if force else _named(get_meta(database.reader(), NAMED))
    new = [link for link in found if link not in known]
    report.aliases += new
    report.known_aliases += len(found) - len(new)


def named_links(connection: Connection) -> set[Link]:
    """The links that have been named: a key, and that of the file it leads to or comes from."""
    return _named(get_meta(connection, NAMED))


def remember(txn: Transaction, found: Sequence[Link], covered: Sequence[str]) -> None:
    """Notes the links as named; those below the `covered` keys that are gone are forgotten."""
    before = _named(get_meta(txn.connection, NAMED))
    after = {*found, *(link for link in before if not any(below(link[1], folder) for folder in covered))}
    if after != before:
        set_meta(txn, NAMED, json.dumps(sorted(after), ensure_ascii=False))


def _named(fact: str | None) -> set[Link]:
    return {(first, other) for first, other in json.loads(fact or "[]")}
