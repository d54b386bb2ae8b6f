"""Explains empty answers that no rewording of the query could fill."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from speckit_memory.errors.echo import abridge, list_names
from speckit_memory.memory.parsing.keys import with_folders
from speckit_memory.memory.parsing.markdown.anchors import find
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.model.columns import Query
from speckit_memory.pipeline.ports import Filter, Passage, Store
from speckit_memory.pipeline.running.demands import describe_demands
from speckit_memory.pipeline.running.runner import Outcome


def near_folder(typed: str, known: Iterable[str]) -> str:
    """The one folder that ends with the typed name (`docs/adr` for `adr`), or that the typed absolute path ends with.

    "" if there is none or several. `known` are folders with memories.
    """
    folders = {place for name in known for place in with_folders(name)}
    longer = {name for name in folders if name.endswith(f"/{typed}")}
    # several folders may end an absolute path: take the longest, which is the innermost
    shorter = max((name for name in folders if name and typed.endswith(f"/{name}")), key=len, default="")
    return longer.pop() if len(longer) == 1 else "" if longer else shorter


EMPTY_STORE = "the store is empty: run `speckit-memory index PATH`"
MAX_SECTIONS = 12
"""Maximum number of existing sections listed if no requested section exists."""


def no_memory_in(folder: str, known: Iterable[str]) -> str:
    """The message for a folder without memories, the same in every interface; `known` are the folders with memories."""

    meant = near_folder(folder, known)
    perhaps = f"did you mean '{abridge(meant)}'? Folders" if meant else "folders"
    return f"no memory is in a folder '{abridge(folder)}'; {perhaps} are named from the workspace root, as in the keys"


def nothing_to_find(query: Query, store: Store) -> str:
    """The reason why no query with these filters can find anything; "" if some query can."""
    if not store.attributes.count:
        return EMPTY_STORE
    wanted = replace(query.wanted, folders=(), memories=None)
    if wanted.folder and not store.attributes.scope(Filter(wanted.folder), query.now).size:
        paths = store.lexicon.index("path")
        return no_memory_in(wanted.folder, store.attributes.label("folder", paths.ids[paths.lengths > 0]).tolist())
    if (wanted.tier or wanted.context_type) and not store.attributes.scope(wanted, query.now).size:
        asked = {"folder": wanted.folder, "tier": wanted.tier, "context type": wanted.context_type}
        return "no memory has the " + " and the ".join(f"{name} '{value}'" for name, value in asked.items() if value)
    if query.plan.memories == ():
        if demands := describe_demands(query.required, query.excluded):
            others = query.concepts or query.wanted.folder or query.wanted.tier or query.wanted.context_type
            return f"there is no memory {demands}" + (" that the other conditions admit" if others else "")
        return "no memory is about all of " + ", ".join(f"'{concept}'" for concept in query.concepts)
    return ""


def only_unconditional(outcome: Outcome, store: Store) -> bool:
    """Whether the answer is empty or contains only constitutional memories that were not asked for."""
    tiers = store.attributes.label("tier", outcome.pool.candidates.parents)
    return not len(tiers) or (not outcome.query.wanted.tier and bool(np.all(tiers == Tier.CONSTITUTIONAL)))


def missing_sections(outcome: Outcome, store: Store) -> str:
    """The message that no memory found has a requested section, with the sections they have; "" if one has."""
    steps = {step for step, notes in outcome.notes.items() if "anchors" in notes.overall}
    lost = [loss.ids for loss in outcome.trace.losses if loss.step in steps]
    if not lost or any("sections" in note for step in steps for note in outcome.notes[step].by_id.values()):
        return ""
    memories = dict.fromkeys(store.attributes.parents(np.concatenate(lost)).tolist())
    there = list(dict.fromkeys(name for memory in memories for name in _sections(store.passages.of_memory(memory))))
    there = there or list(dict.fromkeys(name for memory in memories for name in _headings(memory, store)))
    asked = " or ".join(f"'{anchor}'" for anchor in outcome.query.anchors)
    which = f"they have {list_names(there, MAX_SECTIONS)}" if there else "they have no named sections at all"
    return f"no memory found ({len(memories)} in all) has a section {asked}; {which}"


def _sections(passages: list[Passage]) -> list[str]:
    """The names of all sections of a memory; the passage of a short memory contains several."""
    return [
        name
        for passage in passages
        for name in ([passage.anchor] if passage.anchor else [section.id for section in find(passage.text, file="")[0]])
    ]


def _headings(memory: int, store: Store) -> list[str]:
    """The headings below the first level, which name sections in memories without anchors."""
    from speckit_memory.memory.parsing.markdown import known_sections  # most searches name no sections

    return [one.heading for one in known_sections.headed_sections(store.passages.body(memory)) if one.level > 1]
