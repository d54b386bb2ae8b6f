"""Only the named sections of each memory."""

from __future__ import annotations

import numpy as np

from speckit_memory.memory.indexing.anchors import find, without_tags
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.contracts import About, NoParams
from speckit_memory.pipeline.model import Notes, Query
from speckit_memory.pipeline.ports import Passage, Store, Unavailable
from speckit_memory.pipeline.ranking import Ranking


class AnchorFilter:
    """Hands out the sections that the query names with `anchors`, and hides memories that have none of them.

    Constitutional memories stay even so (feature C6): one without such a section is shown as in any other answer.

    Each note holds the sections in the order of the document, a section of several passages joined to one text.
    The note about the whole compares the characters of these sections with those of the whole memories. Does
    nothing for a query without anchors. Feature A7.
    """

    about = About(features=("A7",))
    Params = NoParams

    def __init__(self, params: NoParams) -> None:
        pass

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """The sections by id, and which rows have some."""
        if not query.anchors:
            return Notes()
        wanted = frozenset(query.anchors)
        sections = {
            row: _sections(store.passages.of_memory(memory), wanted)
            for row, memory in zip(ranking.ids.tolist(), ranking.parents.tolist(), strict=True)
        }
        keep = np.array([bool(sections[row]) for row in ranking.ids.tolist()], np.bool_)
        keep |= store.attributes.label("tier", ranking.ids) == Tier.CONSTITUTIONAL
        sent = sum(len(text) for found in sections.values() for text in found.values())
        of_sections = np.array([row for row in ranking.ids.tolist() if sections[row]], np.int64)
        whole = int(np.nan_to_num(store.attributes.number("characters", of_sections)).sum())
        by_id = {
            row: {"sections": [{"anchor": anchor, "text": text} for anchor, text in found.items()]}
            for row, found in sections.items()
            if found
        }
        overall = {"anchors": {"characters_sent": sent, "characters_whole": whole, "hidden": int(np.sum(~keep))}}
        return Notes(by_id=by_id, overall=overall, keep=keep)


def _sections(passages: list[Passage], wanted: frozenset[str]) -> dict[str, str]:
    """The text of each wanted section without its tags, in the order of the document."""
    texts: dict[str, list[str]] = {}
    for passage in passages:
        if passage.anchor in wanted:
            texts.setdefault(passage.anchor, []).append(without_tags(passage.text).strip())
        elif not passage.anchor:  # a short memory is one passage that holds its sections
            for section in find(passage.text, file="")[0]:
                if section.id in wanted:
                    texts.setdefault(section.id, []).append(without_tags(section.content(passage.text)).strip())
    return {anchor: "\n\n".join(parts) for anchor, parts in texts.items()}
