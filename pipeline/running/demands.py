"""The conditions of a query that every memory must meet: hold its quoted words and none of its excluded words.

The memories that meet them become the scope of the query, as for several concepts, so that no channel can return
others. Conditions that cannot be honoured produce a warning and do not apply: a phrase that no memory holds, and words
that no index knows. Features C2, C3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from speckit_memory.pipeline.model.columns import Plan, Query
from speckit_memory.pipeline.ports import Filter, Store
from speckit_memory.pipeline.running.phrases import content_tokens, memories_with_phrase


def with_demands(plan: Plan, query: Query, store: Store) -> Plan:
    """The plan restricted to memories that meet the query's quoted and excluded words, with warnings."""
    if not query.required and not query.excluded:
        return plan
    scope = store.attributes.scope(replace(query.wanted, memories=plan.memories), query.now)
    if not scope.size:
        return plan  # nothing could be found anyway, and the answer says so
    every = store.lexicon.index("title").ids
    admitted = np.sort(every[every >= 0])
    admitted = left = admitted[scope.admits(admitted)]
    warnings: list[str] = []
    required, excluded = [], []
    for phrase in query.required:
        held = np.intersect1d(memories_with_phrase(phrase, store), admitted)
        if len(held):
            left = np.intersect1d(left, held)
            required.append(phrase)
        elif content_tokens(phrase, store.lexicon):
            bound = query.wanted != Filter(memories=query.wanted.memories) or plan.memories is not None
            which = "that the other conditions admit " if bound else ""
            instead = "searched its words instead" if " " in phrase else "searched without requiring it"
            where = "no title or passage" if " " in phrase else "no memory"
            warnings.append(f"{where} {which}holds the {_kind(phrase)} {_quoted(phrase)}; {instead}")
        else:
            warnings.append(
                f"the {_kind(phrase)} {_quoted(phrase)} is made of everyday words, which cannot be required"
            )
    for phrase in query.excluded:
        if content_tokens(phrase, store.lexicon):
            left = np.setdiff1d(left, memories_with_phrase(phrase, store))
            excluded.append(phrase)
        else:
            warnings.append(
                f"the {_kind(phrase)} {_quoted(phrase)} is made of everyday words, which cannot be left out"
            )
    read = describe_demands(required, excluded) or "none could be honoured"
    memories = plan.memories if len(left) == len(admitted) else tuple(left.tolist())
    said = (*plan.warnings, *warnings)
    return replace(plan, memories=memories, warnings=said, reasons=plan.because(f"marks: {read}"))


def describe_demands(required: Iterable[str], excluded: Iterable[str]) -> str:
    """The conditions in words; empty if there are none."""
    held, without = " and ".join(map(_quoted, required)), " or ".join(map(_quoted, excluded))
    return " ".join(filter(None, (held and f"with {held}", without and f"without {without}")))


def unmet(query: Query, memory: int, store: Store) -> str:
    """The condition of a query that a memory does not meet, as the end of a sentence; empty if it meets all."""
    for phrase in query.required:
        held = memories_with_phrase(phrase, store)
        if len(held) and memory not in held:
            return f"does not hold {_quoted(phrase)}"
    left_out = (phrase for phrase in query.excluded if memory in memories_with_phrase(phrase, store))
    return next((f"holds {_quoted(phrase)}, which the query leaves out" for phrase in left_out), "")


def _kind(phrase: str) -> str:
    return "phrase" if " " in phrase else "word"


def _quoted(phrase: str) -> str:
    return f'"{phrase}"'
