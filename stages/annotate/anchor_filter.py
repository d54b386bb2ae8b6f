"""Returns only the named sections of each memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

import numpy as np

from speckit_memory.memory.lifecycle.handovers import WHOLE, handover_memories
from speckit_memory.memory.parsing.markdown.anchors import find, without_tags
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.model.columns import Notes, Query
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Passage, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, NoParams


class AnchorFilter:
    """Returns the sections that the query names in `anchors`, and hides memories that have none of them.

    Constitutional memories are never hidden (feature C6): one without such a section is shown as in any other answer.

    A memory without an ANCHOR of that name may have the section under a heading with that name, or under an equivalent
    one in a document of a well-known form: "Remaining work" are the next steps (feature I11). A document that is called
    a handover and has none of the sections counts as the section `state` as a whole.

    Each note holds the sections in document order; a section of several passages is joined into one text. The note
    about the whole compares the number of characters of these sections with those of the whole memories. Does nothing
    for a query without anchors. Feature A7.
    """

    about = About(features=("A7", "I11"))
    Params = NoParams

    def __init__(self, params: NoParams) -> None:
        pass

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """The sections by id, and a mask of the rows that have some."""
        if not query.anchors:
            return Notes()
        # Computed at the first call, if there is one, and shared by all rows.
        handovers = cache(lambda: frozenset(handover_memories(store).tolist()))
        sections = {
            row: _sections(memory, query.anchors, store, handovers)
            for row, memory in zip(ranking.ids.tolist(), ranking.parents.tolist(), strict=True)
        }
        # keep: (n,) bool, aligned with the ranking.
        keep = np.array([bool(sections[row]) for row in ranking.ids.tolist()], np.bool_)
        keep |= store.attributes.label("tier", ranking.ids) == Tier.CONSTITUTIONAL
        sent = sum(len(text) for found in sections.values() for text in found.values())
        of_sections = np.array([row for row in ranking.ids.tolist() if sections[row]], np.int64)
        # number() gives float64, NaN for a memory without this fact.
        whole = int(np.nan_to_num(store.attributes.number("characters", of_sections)).sum())
        by_id = {
            row: {"sections": [{"anchor": anchor, "text": text} for anchor, text in found.items()]}
            for row, found in sections.items()
            if found
        }
        overall = {"anchors": {"characters_sent": sent, "characters_whole": whole, "hidden": int(np.sum(~keep))}}
        return Notes(by_id=by_id, overall=overall, keep=keep)


def _sections(
    memory: int, wanted: Sequence[str], store: Store, handovers: Callable[[], frozenset[int]]
) -> dict[str, str]:
    """The text of each wanted section without its tags, in document order."""
    declared = _declared(store.passages.of_memory(memory), frozenset(wanted))
    if not (others := [name for name in dict.fromkeys(wanted) if name not in declared]):
        return declared
    from speckit_memory.memory.parsing.markdown import known_sections  # imported late: most searches name no sections

    body = store.passages.body(memory)
    if not (headed := list(known_sections.named_sections(body, others))):
        is_whole = not declared and WHOLE in others and memory in handovers()
        return {WHOLE: body.strip()} if is_whole else declared
    # Start offsets in the body of the sections that `declared` holds, to merge both kinds in document order.
    places = {section.id: section.start for section in find(body, file="")[0]}
    found = [(places.get(name, 0), name, text) for name, text in declared.items()]
    found += [(one.start, one.name, without_tags(body[one.start : one.end]).strip()) for one in headed]
    return _joined((name, text) for _, name, text in sorted(found))


def _declared(passages: list[Passage], wanted: frozenset[str]) -> dict[str, str]:
    """The sections marked by ANCHOR tags."""

    def texts() -> Iterator[tuple[str, str]]:
        for passage in passages:
            if passage.anchor in wanted:
                yield passage.anchor, without_tags(passage.text).strip()
            elif not passage.anchor:  # a short memory is one passage that holds its sections
                for section in find(passage.text, file="")[0]:
                    if section.id in wanted:
                        yield section.id, without_tags(section.content(passage.text)).strip()

    return _joined(texts())


def _joined(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The texts of each name, joined in order."""
    parts: dict[str, list[str]] = {}
    for name, text in texts:
        parts.setdefault(name, []).append(text)
    return {name: "\n\n".join(each) for name, each in parts.items()}
