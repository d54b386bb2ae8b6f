"""Of live queries, which are one question asked again, and in which order questions are judged.

Whoever asks the same again gets the same answers again: that is no further evidence on two pipelines, however often it
comes. And judgements speak for queries that nobody has judged only if chance has chosen which are: the lot of a
question hangs on nothing but the id of the query that asked it first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from hashlib import sha256

from speckit_memory.memory.store.evaluation.records import Pair


def lot(query: str, *, readable: bool = True) -> bytes:
    """The place of a query in the random order in which queries are judged; those without a text come last."""
    return (b"0" if readable else b"1") + sha256(query.encode()).digest()


def distinct(pairs: Iterable[Pair]) -> list[list[Pair]]:
    """The pairs of each question together, in the order in which they were given, and the questions in that order.

    Where texts are kept a question is its text and its folder, and where only its digest is kept, that. In records that
    are older than digests two queries are one question that both pipelines answered with the same memories and scores
    in the same state of the store, which another wording hardly does.
    """
    questions: dict[Hashable, list[Pair]] = {}
    for pair in pairs:
        questions.setdefault(_question(pair), []).append(pair)
    return list(questions.values())


def _question(pair: Pair) -> Hashable:
    query, control, variant = pair.query, pair.control, pair.variant.answer
    if query.question:
        words = " ".join(str(query.question.get("text", "")).casefold().split())
        return words, str(query.question.get("folder") or query.folder)
    if query.question_digest:
        return query.question_digest
    alike = control.memories, control.scores, variant.memories, variant.scores
    return query.store, query.state, query.folder, *(tuple(one) for one in alike)
