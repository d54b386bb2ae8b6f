"""Simpler memories for comparison: they send the top passages of one search in order until the budget is full.

They send no headings, reasons or notes, only the key of each memory, so that the budget goes to text.
"""

from __future__ import annotations

from speckit_memory.engine.api.memory import Memory
from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.evaluation.tokens.recall_per_token import Answerer, SentAnswer

PEERS = {"fts5": "passages by FTS5", "vector": "passages by vectors"}
"""The presets that the peers search with, and their names in reports."""
ASKED = 50
"""Number of memories requested; no measured budget has room for all."""
WHOLE = 100_000
"""More characters than any passage has."""


def peer(name: str, memory: Memory) -> Answerer:
    """The answerer of a peer, over a memory that searches with the peer's preset."""

    def answer(query: DatasetQuery, budget: int) -> SentAnswer:
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
        return SentAnswer(tuple(sent), total)

    return Answerer(PEERS[name], answer, peer=True)


def _cut(memory: Memory, key: str, text: str, room: int) -> tuple[str, int]:
    """As much of a passage, below its key, as fits into `room` tokens, and the tokens of both."""
    while text:
        tokens = memory.count_tokens([f"{key}\n{text}\n\n"])[0]
        if tokens <= room:
            return text, tokens
        text = text[: min(len(text) - 1, len(text) * max(room, 0) // tokens)]
    return "", 0
