"""What simpler memories send: the top passages of one search, one after another, until the budget is full.

No heading, no reason, no note: only what says which memory it is, so that all room goes to text.
"""

from __future__ import annotations

from speckit_memory.engine.api.memory import Memory
from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.evaluation.tokens.recall_per_token import Answerer, Sent

PEERS = {"fts5": "passages by FTS5", "vector": "passages by vectors"}
"""The presets that they search by, and what they are called in reports."""
ASKED = 50
"""Memories that are asked for; no budget that is measured has room for all."""
WHOLE = 100_000
"""Characters that no passage has."""


def peer(name: str, memory: Memory) -> Answerer:
    """The answerer over a memory that searches by the preset of a peer."""

    def answer(query: DatasetQuery, budget: int) -> Sent:
        result = memory.search(query.text, limit=ASKED, folder=query.folder, deadline_ms=None, snippet=WHOLE)
        sent: list[tuple[str, str]] = []
        total = 0
        for row in result.results:
            text, tokens = _cut(memory, row.key, row.snippet, budget - total)
            if not text:
                break
            sent.append((row.key, text))
            total += tokens
            if text != row.snippet:
                break
        return Sent(tuple(sent), total)

    return Answerer(PEERS[name], answer, peer=True)


def _cut(memory: Memory, key: str, text: str, room: int) -> tuple[str, int]:
    """As much of a passage, below its key, as `room` tokens hold, and the tokens of both."""
    while text:
        tokens = memory.count_tokens([f"{key}\n{text}\n\n"])[0]
        if tokens <= room:
            return text, tokens
        text = text[: min(len(text) - 1, len(text) * max(room, 0) // tokens)]
    return "", 0
