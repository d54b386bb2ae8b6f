"""Which memory a declared link means (feature I3).

What may change that is noted in the transaction that changes it, so that saving one document looks at few links however
many there are, and a run that was killed is made up for by the next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from posixpath import normpath

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.queries import rows


def last_part(path: str) -> str:
    """What a key and every target that may mean it have in common; the columns `name` and `target_name`."""
    return path.rpartition("/")[2]


def meant(target: str, document: str, keys: Collection[str]) -> list[str]:
    """The keys that a target declared in `document` may mean; `keys` are at least those with the same last part.

    A key stands for itself. Else the target is a path relative to the document, and else the end of a key ("plan.md"
    for "specs/plan.md"); only an end can mean several.
    """
    relative = normpath(f"{document.rpartition('/')[0] or '.'}/{target}")
    for exact in (target, relative):
        if exact in keys:
            return [exact]
    ending = f"/{relative if target.startswith('.') else target}"
    return sorted(key for key in keys if key.endswith(ending))


def note_keys(txn: Transaction, keys: Iterable[str]) -> None:
    """Notes that memories with these keys came or went: links may mean them now, or no longer."""
    txn.connection.executemany("INSERT OR IGNORE INTO changed_keys VALUES (?)", [(last_part(key),) for key in keys])


def note_memories(txn: Transaction, memory_ids: Iterable[int]) -> None:
    """Notes that these memories declare other links, or lost an edge to a memory that went."""
    txn.connection.executemany(
        "INSERT OR IGNORE INTO changed_links SELECT id FROM memories WHERE id = ?", [(each,) for each in memory_ids]
    )


def find_targets(txn: Transaction) -> None:
    """Finds anew what the links mean that may have changed, and notes the memories that declare those that did.

    A link to where a file lay before it was moved means its memory still, unless another has that place now.
    """
    connection = txn.connection
    keys: dict[str, dict[str, int]] = {}
    for name, key, memory_id in rows(
        connection,
        "SELECT name, key, id FROM memories WHERE name IN (SELECT name FROM changed_keys UNION "
        "SELECT target_name FROM declared_links WHERE memory_id IN (SELECT memory_id FROM changed_links))",
    ):
        keys.setdefault(name, {})[key] = memory_id
    former: dict[str, dict[str, int]] = {}
    for name, key, memory_id in rows(
        connection,
        "SELECT name, key, memory_id FROM former_keys WHERE name IN (SELECT name FROM changed_keys UNION "
        "SELECT target_name FROM declared_links WHERE memory_id IN (SELECT memory_id FROM changed_links))",
    ):
        former.setdefault(name, {})[key] = memory_id
    changed: list[tuple[int | None, int, int]] = []
    for memory_id, ordinal, target, name, before, document in rows(
        connection,
        "SELECT memory_id, ordinal, target, target_name, target_id, key FROM declared_links "
        "JOIN memories ON memories.id = memory_id WHERE memory_id IN (SELECT memory_id FROM changed_links) "
        "OR target_name IN (SELECT name FROM changed_keys)",
    ):
        candidates = keys.get(name, {})
        found = meant(target, document, candidates)
        if not found:  # only what nothing is called now means what was called so
            candidates = former.get(name, {})
            found = meant(target, document, candidates)
        now = candidates[found[0]] if len({candidates[key] for key in found}) == 1 else None
        if now != before:
            changed.append((now, memory_id, ordinal))
    connection.executemany("UPDATE declared_links SET target_id = ? WHERE memory_id = ? AND ordinal = ?", changed)
    note_memories(txn, {memory_id for _, memory_id, _ in changed})
    connection.execute("DELETE FROM changed_keys")
