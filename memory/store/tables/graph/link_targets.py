"""Resolution of declared links to memories (feature I3).

Every transaction records its changes that may affect links. So saving a document re-resolves few links even in a large
store, and the next run finishes the work of a killed one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from posixpath import normpath

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import rows

_NUMBERED = re.compile(r"(?P<kind>[A-Za-z]{1,12}(?=[-_ ]?\d))?[-_ ]?0*(?P<number>\d{1,6})(?!\d|-\d\d-\d\d)")
"""The start of a name such as `0005-use-y.md`, `ADR-5.md`, `pep-0008.rst`; dates do not match."""
_OF_FOLDERS = ("readme", "index")
_KINDS = {"adr": ("adr", "decision", "decision-record", "architecture-decision")}
"""Names of folders for documents of a kind, where they differ from the kind itself."""


def last_part(path: str) -> str:
    """The last part of a path, which a key shares with every target that may mean it; as in the columns `name` and
    `target_name`."""
    return path.rpartition("/")[2]


def numbered_name(key: str) -> str:
    """The number by which people refer to a document: #5 for `adr/0005-use-y.md`, `keps/5-use-y/README.md`, `pep-0005`;
    "" if its name does not start with one."""
    match = _NUMBERED.match(_own_name(key))
    return f"#{match['number']}" if match else ""


def _open_to(owner: str, keys: Mapping[str, int], owners: Mapping[int, str]) -> dict[str, int]:
    """The keys that a document of this owner may mean: private memories of others, and for a shared document all
    private ones, count as missing. Otherwise a private memory would decide what a shared link means."""
    return {key: memory for key, memory in keys.items() if owners.get(memory, owner) == owner}


def candidate_keys(target: str, document: str, keys: Collection[str]) -> list[str]:
    """The keys that a target declared in `document` may mean; `keys` must contain all with the same last part, or with
    the same number for a target such as "#5" and "adr/#5".

    An exact key comes first, then a path relative to the document, then the end of a key ("plan.md" for
    "specs/plan.md"); only an end can match several keys. A bare number means a document in the same folder; one with a
    kind may also mean a document of this kind in another folder.
    """
    if last_part(target).startswith("#"):
        return _numbered(target.rpartition("/")[0], document, keys)
    # "../b.md" in "docs/adr/a.md" is "docs/b.md"
    relative = normpath(f"{document.rpartition('/')[0] or '.'}/{target}")
    for exact in (target, relative):
        if exact in keys:
            return [exact]
    ending = f"/{relative if target.startswith('.') else target}"
    return sorted(key for key in keys if key.endswith(ending))


def _numbered(kind: str, document: str, keys: Collection[str]) -> list[str]:
    folders, called = _folders_above(document), _KINDS.get(kind, (kind,))
    beside = [key for key in keys if _folders_above(key) == folders]
    if not kind:
        return sorted(beside)
    of_kind = [
        key
        for key in keys
        if _kind(key) == kind
        or (not _kind(key) and any(part.removesuffix("s") in called for part in _folders_above(key)))
    ]
    nearest = [key for key in of_kind if key in beside] or of_kind or [key for key in beside if not _kind(key)]
    return sorted(nearest)


def _own_name(key: str) -> str:
    """The last part of a key, or the name of its folder for a `README` or `index` file."""
    folder, _, name = key.rpartition("/")
    return last_part(folder) if name.partition(".")[0].casefold() in _OF_FOLDERS and folder else name


def _folders_above(key: str) -> list[str]:
    """The folders above a document, without the folder of which it is the `README` or `index` file."""
    folders = key.casefold().split("/")[:-1]
    return folders[:-1] if _own_name(key) != last_part(key) else folders


def _kind(key: str) -> str:
    match = _NUMBERED.match(_own_name(key))
    return (match["kind"] or "").casefold() if match else ""


def note_keys(txn: Transaction, keys: Iterable[str]) -> None:
    """Records that memories with these keys were added or removed, so that links to them must be resolved again."""
    names = {name for key in keys for name in (last_part(key), numbered_name(key)) if name}
    txn.connection.executemany("INSERT OR IGNORE INTO changed_keys VALUES (?)", [(name,) for name in sorted(names)])


def note_memories(txn: Transaction, memory_ids: Iterable[int]) -> None:
    """Records that the declared links of these memories changed, or that an edge's other memory was deleted."""
    txn.connection.executemany(
        "INSERT OR IGNORE INTO changed_links SELECT id FROM memories WHERE id = ?", [(each,) for each in memory_ids]
    )


def find_targets(txn: Transaction) -> None:
    """Resolves again all links that recorded changes may affect, and records the memories whose links changed target.

    A link to a file's former path still means its memory, unless another memory has that key now. Which principal
    runs this makes no difference.
    """
    with txn.seeing_all():
        _find_targets(txn)


def _find_targets(txn: Transaction) -> None:
    connection = txn.connection
    owners: dict[int, str] = dict(rows(connection, "SELECT id, owner FROM private_ids"))
    # keys: candidates by last part or number, each a memory id by key. Only names that changed, or that changed
    # documents link to, are looked up.
    keys: dict[str, dict[str, int]] = {}
    for name, key, memory_id in rows(
        connection,
        "SELECT name, key, id FROM memories WHERE name IN (SELECT name FROM changed_keys UNION "
        "SELECT target_name FROM declared_links WHERE memory_id IN (SELECT memory_id FROM changed_links))",
    ):
        keys.setdefault(name, {})[key] = memory_id
    numbers = {
        name
        for (name,) in rows(
            connection,
            "SELECT DISTINCT target_name FROM declared_links WHERE target_name GLOB '#[0-9]*' AND (target_name IN "
            "(SELECT name FROM changed_keys) OR memory_id IN (SELECT memory_id FROM changed_links))",
        )
    }
    # A number is not the last part of a key, so that no index finds it: all keys are read, but only if needed.
    for key, memory_id in rows(connection, "SELECT key, id FROM memories") if numbers else ():
        if (name := numbered_name(key)) in numbers:
            keys.setdefault(name, {})[key] = memory_id
    former: dict[str, dict[str, int]] = {}
    for name, key, memory_id in rows(
        connection,
        "SELECT name, key, memory_id FROM former_keys WHERE name IN (SELECT name FROM changed_keys UNION "
        "SELECT target_name FROM declared_links WHERE memory_id IN (SELECT memory_id FROM changed_links))",
    ):
        former.setdefault(name, {})[key] = memory_id
    changed: list[tuple[int | None, int, int]] = []
    # by memory with the primary key, by name with declared_links_by_name
    for memory_id, ordinal, target, name, before, document in rows(
        connection,
        "SELECT memory_id, ordinal, target, target_name, target_id, key FROM declared_links "
        "JOIN memories ON memories.id = memory_id WHERE memory_id IN (SELECT memory_id FROM changed_links) "
        "OR target_name IN (SELECT name FROM changed_keys)",
    ):
        owner = owners.get(memory_id, "")
        candidates = _open_to(owner, keys.get(name, {}), owners)
        found = candidate_keys(target, document, candidates)
        if not found:  # former keys count only if no present key matches
            candidates = _open_to(owner, former.get(name, {}), owners)
            found = candidate_keys(target, document, candidates)
        # ambiguous targets stay unresolved, unless all keys mean one memory
        now = candidates[found[0]] if len({candidates[key] for key in found}) == 1 else None
        if now != before:
            changed.append((now, memory_id, ordinal))
    connection.executemany("UPDATE declared_links SET target_id = ? WHERE memory_id = ? AND ordinal = ?", changed)
    note_memories(txn, {memory_id for _, memory_id, _ in changed})
    connection.execute("DELETE FROM changed_keys")
