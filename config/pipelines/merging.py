"""Merges one mapping into another (feature P2): key by key, at any depth; other values replace."""

from __future__ import annotations

from dataclasses import replace

from speckit_memory.config.yaml.reader import MappingEntry, YamlMapping


def merge_mappings(below: YamlMapping, above: YamlMapping) -> YamlMapping:
    """Both mappings merged, at the place of `above`; `above` wins for keys in both.

    Keys keep the order of `below`, new ones follow. Every value keeps the place where it was written.
    """
    own = {entry.key: entry for entry in above.entries}
    # Popped keys are used; the remaining ones in `own` are new and follow at the end.
    kept = tuple(_upon(entry, own.pop(entry.key, entry)) for entry in below.entries)
    return YamlMapping((*kept, *own.values()), above.where)


def _upon(below: MappingEntry, above: MappingEntry) -> MappingEntry:
    if isinstance(below.value, YamlMapping) and isinstance(above.value, YamlMapping) and below is not above:
        return replace(above, value=merge_mappings(below.value, above.value))
    return above
