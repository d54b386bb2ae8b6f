"""Groups live queries by question, and orders questions for judging.

The same question gets the same answers, so asking it again adds no evidence about two pipelines. Judged queries
represent the others only if they were chosen at random: the place of a question in the order of judging depends on
nothing but the id of the first query that asked it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from hashlib import sha256

from speckit_memory.memory.store.evaluation.records import RecordedPair


def lot(query: str, *, readable: bool = True) -> bytes:
    """The sort key of a query in the random order of judging; queries without a text come last."""
    return (b"0" if readable else b"1") + sha256(query.encode()).digest()


def distinct(pairs: Iterable[RecordedPair]) -> list[list[RecordedPair]]:
    """Groups the pairs by question; questions and their pairs keep the given order.

    A question is identified by its text and folder where texts are kept, else by its digest. In records older than
    digests, queries are the same question if both pipelines answered them with the same memories and scores in the same
    state of the store, which hardly happens with a different wording.
    """
    questions: dict[Hashable, list[RecordedPair]] = {}
    for pair in pairs:
        questions.setdefault(_question(pair), []).append(pair)
    return list(questions.values())


def _question(pair: RecordedPair) -> Hashable:
    query, control, variant = pair.query, pair.control, pair.variant.answer
    if query.question:
        # case and spacing do not make another question
        words = " ".join(str(query.question.get("text", "")).casefold().split())
        return words, str(query.question.get("folder") or query.folder)
    if query.question_digest:
        return query.question_digest
    alike = control.memories, control.scores, variant.memories, variant.scores
    return query.store, query.state, query.folder, *(tuple(one) for one in alike)
