"""What a query demands of every memory: to hold its quoted words, and none of those that it leaves out.

The memories that meet the demands become the scope of the question, as those of several concepts do, so that no
channel can bring in another. What cannot be honoured is said and does not bind: a phrase that no memory holds, and
words that no index knows. Features C2, C3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from speckit_memory.pipeline.model.columns import Plan, Query
from speckit_memory.pipeline.ports import Filter, Store
from speckit_memory.pipeline.running.phrases import content_tokens, memories_with_phrase


def with_demands(plan: Plan, query: Query, store: Store) -> Plan:
    """The plan with the memories that the query's quoted and excluded words leave of its own, and what to say of it."""
    if not query.required and not query.excluded:
        return plan
    scope = store.attributes.scope(replace(query.wanted, memories=plan.memories), query.now)
    if not scope.size:
        return plan  # nothing could be found in any case, and that is what the answer says
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
    read = demanded(required, excluded) or "none could be honoured"
    memories = plan.memories if len(left) == len(admitted) else tuple(left.tolist())
    said = (*plan.warnings, *warnings)
    return replace(plan, memories=memories, warnings=said, reasons=plan.because(f"marks: {read}"))


def demanded(required: Iterable[str], excluded: Iterable[str]) -> str:
    """What is demanded, in words; empty for nothing."""
    held, without = " and ".join(map(_quoted, required)), " or ".join(map(_quoted, excluded))
    return " ".join(filter(None, (held and f"with {held}", without and f"without {without}")))


def unmet(query: Query, memory: int, store: Store) -> str:
    """Which demand of a query a memory does not meet, as the end of a sentence about it; empty when it meets all."""
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
