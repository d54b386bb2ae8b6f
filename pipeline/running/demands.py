"""The conditions of a query that every memory must meet: hold its quoted words and none of its excluded words.

The memories that meet them become the scope of the query, as for several concepts, so that no channel can return
others. Conditions that cannot be honoured produce a warning and do not apply: a phrase that no memory holds, and words
that no index knows. Features C2, C3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.arithmetic import distinct
from speckit_memory.pipeline.model.columns import Plan, Query
from speckit_memory.pipeline.ports import Filter, Ids, Lexicon, Store, TermIndex
from speckit_memory.pipeline.running.lookup import memories_with

Rows = NDArray[np.int32]
LONGEST_HUMPED = 64
"""The analyser keeps no longer identifier whole, so longer ones are not indexed next to their parts."""
Read = Callable[[Ids], Sequence[str]]
"""Returns the texts for ids of an index."""


def content_tokens(phrase: str, lexicon: Lexicon) -> tuple[str, ...]:
    """The indexed tokens of a phrase; empty if all of its words are stop words."""
    # The analyser keeps stop words if a text has no others, but no index holds them. The added number prevents that.
    return lexicon.analyse(f"{phrase} 0")[:-1]


def memories_with_phrase(phrase: str, store: Store) -> Ids:
    """The memories that hold the words of a phrase in a row in a passage or in the title, ascending.

    Analysed words are compared: inflections, stop words in between and case make no difference. A single word may occur
    in any field; an identifier must occur as a whole. Empty for a phrase of stop words alone.
    """
    lexicon = store.lexicon
    words = phrase.split()
    found = [np.empty(0, np.int64)]
    # Camel case splits an identifier into several tokens, lower case does not: "SQLite" and "sqlite".
    for tokens in dict.fromkeys((content_tokens(phrase, lexicon), content_tokens(phrase.casefold(), lexicon))):
        if len(tokens) == 1 or (len(words) == 1 and tokens and all(token in tokens[0] for token in tokens)):
            found.append(memories_with(tokens[0], lexicon))
        elif tokens:
            chunks, titles = lexicon.index("body", "chunk"), lexicon.index("title")
            passages = _with_run(tokens, words, chunks, lexicon, lambda ids: _texts(ids, store))
            found.append(store.attributes.parents(passages))
            labelled = _with_run(tokens, words, titles, lexicon, lambda ids: _titles(ids, store))
            found.append(labelled)
    return distinct(np.concatenate(found))


def _with_run(tokens: Sequence[str], words: Sequence[str], index: TermIndex, lexicon: Lexicon, read: Read) -> Ids:
    """The entries of an index that hold these tokens in a row."""
    rows = reduce(np.intersect1d, (index.adjacent(first, second) for first, second in pairwise(tokens)))
    ids = index.ids_of(rows)
    if len(tokens) > 2 and len(ids):
        # Every pair occurs; only the text shows whether the pairs overlap to form the whole phrase.
        run = _joined(tokens)
        ids = ids[[run in _joined(lexicon.analyse(text)) for text in read(ids)]]
    others = index.ids_of(np.setdiff1d(_with_humps(words, index, lexicon), rows))
    if not len(others):
        return ids
    spelt = re.compile(r"(?<!\w)" + r"\W+".join(map(re.escape, words)) + r"(?!\w)", re.IGNORECASE)
    return np.append(ids, others[[bool(spelt.search(text)) for text in read(others)]])


def _with_humps(words: Sequence[str], index: TermIndex, lexicon: Lexicon) -> Rows:
    """The rows that hold every word, one of them as a camel-case identifier whose parts precede the next word.

    `SQLite store` has the tokens sqlite, sq, lite, store.
    """
    tokens = [content_tokens(word.casefold(), lexicon) for word in words]
    known = [index.postings(found[0]).rows for found in tokens if found]
    rows = reduce(np.intersect1d, known)
    humped = [
        index.adjacent(found[0], first[0])
        for word, found in zip(words, tokens, strict=True)
        if len(rows) and found and len(word) <= LONGEST_HUMPED
        for place in range(2, len(word) - 1)
        if (first := content_tokens(word[:place].casefold(), lexicon))
    ]
    return np.intersect1d(rows, np.concatenate(humped)) if humped else rows[:0]


def _joined(tokens: Sequence[str]) -> str:
    """The tokens, which contain no blanks, joined with blanks around each."""
    return f" {' '.join(tokens)} "


def _texts(chunks: Ids, store: Store) -> list[str]:
    return [passage.text for passage in store.passages.passages(chunks.tolist())]


def _titles(memories: Ids, store: Store) -> list[str]:
    titles: list[str] = store.attributes.label("title", memories).tolist()
    return titles


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
