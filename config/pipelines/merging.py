"""Merges one mapping into another (feature P2): key by key, at any depth; other values replace."""

from __future__ import annotations

from dataclasses import replace

from speckit_memory.config.yaml.reader import Entry, Mapping


def merged(below: Mapping, above: Mapping) -> Mapping:
    """Both mappings merged, at the place of `above`; `above` wins for keys in both.

    Keys keep the order of `below`, new ones follow. Every value keeps the place where it was written.
    """
    own = {entry.key: entry for entry in above.entries}
    # Popped keys are used; the remaining ones in `own` are new and follow at the end.
    kept = tuple(_upon(entry, own.pop(entry.key, entry)) for entry in below.entries)
    return Mapping((*kept, *own.values()), above.where)


def _upon(below: Entry, above: Entry) -> Entry:
    if isinstance(below.value, Mapping) and isinstance(above.value, Mapping) and below is not above:
        return replace(above, value=merged(below.value, above.value))
    return above
