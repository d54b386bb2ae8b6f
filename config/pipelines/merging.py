"""How one mapping is laid upon another (feature P2): key by key, at any depth; everything else replaces."""

from __future__ import annotations

from dataclasses import replace

from speckit_memory.config.yaml.reader import Entry, Mapping


def merged(below: Mapping, above: Mapping) -> Mapping:
    """Both mappings as one, which stands where `above` does; of a key that both hold, `above` decides.

    The keys keep the order of `below`, new ones follow. Every value keeps the place at which it was written.
    """
    own = {entry.key: entry for entry in above.entries}
    kept = tuple(_upon(entry, own.pop(entry.key, entry)) for entry in below.entries)
    return Mapping((*kept, *own.values()), above.where)


def _upon(below: Entry, above: Entry) -> Entry:
    if isinstance(below.value, Mapping) and isinstance(above.value, Mapping) and below is not above:
        return replace(above, value=merged(below.value, above.value))
    return above
