"""BM25 over the in-memory inverted indexes: weighted fields, single fields and the best passage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from speckit_memory.channels._feedback import Feedback, with_feedback
from speckit_memory.pipeline.arithmetic import best_of_each
from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.costs import StepCostEstimate
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import FIELDS, Bags, Column, Ids, Level, Scope, Store
from speckit_memory.pipeline.roles.contracts import About, ChannelParams, Params, PipelineContext
from speckit_memory.pipeline.running.lookup import best_admitted, informative_terms

Rows = NDArray[np.intp]


class CombinedFields(Params):
    """Weights of the fields that form one bag of words per memory; 0 leaves the field out."""

    title: float = Field(
        default=10.0, ge=0, le=100, description="Weight of the title.", json_schema_extra={"tunable": [0.0, 10.0]}
    )
    triggers: float = Field(default=5.0, ge=0, le=100, description="Weight of the trigger phrases.")
    path: float = Field(default=2.0, ge=0, le=100, description="Weight of the file path.")
    body: float = Field(default=1.0, ge=0, le=100, description="Weight of the text.")


class SingleFields(Params):
    """Factors of the fields that are scored once more, each by itself; 0 leaves the field out."""

    title: float = Field(
        default=0.0,
        ge=0,
        le=10,
        description="Factor of the title's own BM25.",
        json_schema_extra={"tunable": [0.0, 2.0]},
    )
    triggers: float = Field(default=0.0, ge=0, le=10, description="Factor of the trigger phrases' own BM25.")
    path: float = Field(default=0.0, ge=0, le=10, description="Factor of the path's own BM25.")
    body: float = Field(default=0.0, ge=0, le=10, description="Factor of the text's own BM25.")


class Bm25Params(ChannelParams):
    """Parameters of the BM25 channel; the defaults are the catalogue's."""

    level: Level = Field("memory", description="What is returned: whole memories or passages.")
    k1: float = Field(
        1.2,
        ge=0,
        le=10,
        description="How slowly repeated words saturate: higher values let repetitions count more.",
        json_schema_extra={"tunable": [0.6, 2.4]},
    )
    b: float = Field(
        0.75, ge=0, le=1, description="How much long texts are discounted.", json_schema_extra={"tunable": [0.2, 0.9]}
    )
    fields: CombinedFields = Field(
        CombinedFields(), description="Fields combined into one bag of words per memory (BM25F)."
    )
    single: SingleFields = Field(SingleFields(), description="Fields also scored separately and added to the sum.")
    passage: float = Field(
        0.0,
        ge=0,
        le=10,
        description="Factor of the passages' BM25; a memory counts its best passage.",
        json_schema_extra={"tunable": [0.0, 2.0]},
    )
    passage_title: float = Field(
        1.0,
        ge=0,
        le=100,
        description="Weight of the memory's title in the bag of words of each of its passages.",
        json_schema_extra={"tunable": [0.0, 4.0]},
    )
    context: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of the better neighbour's score that a short note of the same folder adds.",
        json_schema_extra={"tunable": [0.0, 0.4]},
    )
    k3: float = Field(
        0.0,
        ge=0,
        le=1000,
        description="How much a word repeated in the query counts: higher counts more, 0 counts it once.",
        json_schema_extra={"tunable": [0.0, 20.0]},
    )
    coordination: float = Field(
        0.0,
        ge=0,
        le=10,
        description="Penalty for memories that lack words of a short query; it fades as the query gets longer.",
        json_schema_extra={"tunable": [0.0, 10.0]},
    )
    max_terms: int = Field(
        1000, ge=1, le=1000, description="Maximum number of different query words; the most informative ones are kept."
    )
    feedback: Feedback = Field(
        Feedback(), description="A second search with words of the first hits, for queries that are not simple."
    )


_LITTLE = 0.05
"""A smaller exponent of the coverage changes no score by more than a few percent."""


_ALONE = ((1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0))
"""Weights that select the words of a single field, in the order of `FIELDS`."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """The bags scored by one search: `wholes` with factors, over `memories` rows; `passages` is None if not used."""

    memories: Bags
    wholes: tuple[tuple[float, Bags], ...]
    passages: Bags | None


class Bm25:
    """BM25 in three parts that add up: combined fields, single fields, best passage.

    The combined fields form one bag of words per memory (BM25F: a word of the title counts as often as its weight says,
    and saturates once). A single field has its own lengths and word statistics. A passage is scored together with the
    title of its memory, so that it need not repeat it; `passages` of the hits name the best one. Each part uses idf =
    log((N − df + 0.5)/(df + 0.5) + 1). A word that occurs n times in the query weighs (k3 + 1)·n / (k3 + n) (Robertson
    and Walker 1994). Scores are unbounded sums.

    A query of two or three words expects them all, but a long text that repeats one may score above a text that
    holds each once. With `coordination` c, a query of n words (stop words included) multiplies the score of a memory by
    coverage^(c / (n − 1)²), where coverage is the share of the query's information, Σ weight · idf, that the combined
    fields hold. An answer to a long query need not hold every word, and its scores hardly change.

    A short note may say little without the one before it: with `context` each memory that has neighbours (see
    `pipeline.ports.Attributes.neighbours`) adds that share of the better neighbour's score. A neighbour that the query
    may not see adds nothing.

    `feedback` searches a second time with weighted words of the first hits added to the query. There is no second
    search for queries judged simple, nor where no hit is clearly better than the others. Features C3, C12.
    """

    about = About(features=("C3", "C12"), gives=Scale.BM25, costly=True)
    Params = Bm25Params

    def __init__(self, params: Bm25Params) -> None:
        self._params = params

    @classmethod
    def check(cls, params: Bm25Params, _: PipelineContext) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """At least one weight must be above 0, and passages need a score that tells them apart."""
        if params.level == "chunk" and params.context:
            yield ("context",), "passages have no neighbours; use level memory or context 0"
        if params.level == "chunk" and not params.passage:
            yield ("level",), "level chunk needs 'passage' above 0, or all passages of a memory score the same"
        if params.coordination and not any(params.fields.model_dump().values()):
            yield ("coordination",), "measures which words the combined fields hold, but every weight of 'fields' is 0"
        if not any((*params.fields.model_dump().values(), *params.single.model_dump().values(), params.passage)):
            yield ("fields",), "every weight is 0, so nothing could be found"

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The `limit` best admitted memories or passages that hold any word of the query."""
        weights = _terms(self._params, query, store)
        scope = store.attributes.scope(query.wanted, query.now)
        layout = _laid_out(self._params, store)
        words = max(len(weights), len(query.text.split()))
        # c / (n - 1)²; 0 for a single word, which every hit holds
        power = self._params.coordination / (words - 1) ** 2 if len(weights) > 1 else 0.0
        feedback = self._params.feedback
        if feedback.model != "none" and query.plan.complexity != "simple":
            # The feedback must not depend on the limit of the search; two hits are enough to see a lead.
            first = self._found(weights, max(feedback.documents, 2), scope, layout, power)
            weights = with_feedback(feedback, weights, first, store) or weights
        return self._found(weights, limit, scope, layout, power)

    def cost(self, query: Query, rows: int, store: Store) -> StepCostEstimate:  # noqa: ARG002
        """The postings of the query's words in all indexes that count; for a long query, of the kept words only."""
        p = self._params
        weighed = [name for fields in (p.fields, p.single) for name, weight in fields.model_dump().items() if weight]
        indexes = [store.lexicon.index(field) for field in FIELDS for name in weighed if name == field]
        if p.passage:
            indexes.append(store.lexicon.index("body", "chunk"))
            indexes += [store.lexicon.index("title")] if p.passage_title else []
        terms = _terms(p, query, store)
        again = p.feedback.model != "none" and query.plan.complexity != "simple"
        read = sum(index.holders(term) for index in indexes for term in terms)
        return StepCostEstimate(postings=read, feedback_words=p.feedback.terms if again else 0)

    def _found(self, terms: Mapping[str, float], limit: int, scope: Scope, layout: _Layout, power: float) -> Hits:
        """The best rows for these weighted words.

        `power` is the exponent of coverage.
        """
        memories = layout.memories
        # (memories + 1,): the last row is for passages without a memory (-1)
        whole = np.zeros(memories.height + 1)
        for factor, scorer in layout.wholes:
            scores = scorer.scores(terms)
            scores *= factor  # in place: for a large store each new array would touch fresh pages
            whole[:-1] += scores
        # Coverage belongs to the memory: its passages are multiplied by the same factor as the whole memory.
        together = None
        if power >= _LITTLE:
            _, combined = layout.wholes[0]
            held = combined.coverage(terms)
            some = held.nonzero()[0]  # raising all the zeros to a power would take most of the time
            together = np.zeros(len(whole))
            together[some] = held[some] ** power
            whole *= together
        if layout.passages is None:
            scores = self._in_context(whole, memories, scope)
            rows = best_admitted(memories.ids_of, scores, limit, scope)
            return Hits(memories.ids_of(rows), scores[rows], Scale.BM25)
        # parts: (passages,); parents: the row of each passage's memory
        parts = layout.passages.scores(terms)
        matched = (parts > 0.0).nonzero()[0]
        parts, parents = self._params.passage * parts[matched], layout.passages.parents_of(matched)
        if together is not None:
            parts *= together[parents]
        if self._params.level == "chunk":
            scores, found = parts + whole[parents], layout.passages.ids_of(matched)
            rows = best_admitted(found.take, scores, limit, scope)
            return Hits(found[rows], scores[rows], Scale.BM25, "chunk", found[rows])
        # np.maximum.at is unbuffered: several passages of one memory write to the same row.
        best = np.zeros(len(whole))
        np.maximum.at(best, parents, parts)
        best += whole
        scores = self._in_context(best, memories, scope)
        rows = best_admitted(memories.ids_of, scores, limit, scope)
        passages = _best_passages(rows, matched, layout.passages, parts, parents)
        return Hits(memories.ids_of(rows), scores[rows], Scale.BM25, "memory", passages)

    def _in_context(self, scores: Column, memories: Bags, scope: Scope) -> Column:
        """The memories' scores plus the share of their admitted neighbours; drops the extra last row."""
        if not self._params.context:
            return scores[:-1]
        seen = scores
        if not scope.complete:
            # Only rows with a score can add something, and they are few compared with all rows.
            found = np.flatnonzero(scores[:-1] > 0.0)
            seen = scores.copy()
            seen[found[~scope.admits(memories.ids_of(found))]] = 0.0
        added = memories.better_neighbour(seen)
        if added is None:
            return scores[:-1]
        added *= self._params.context
        added += scores[:-1]
        return added


def _laid_out(p: Bm25Params, store: Store) -> _Layout:
    """The bags for these parameters; the store caches them between searches."""
    bags = store.lexicon.bags
    fields, single = p.fields, p.single
    combined = (fields.title, fields.triggers, fields.path, fields.body)
    wholes = [(1.0, bags(combined, p.k1, p.b))] if any(combined) else []
    for place, factor in enumerate((single.title, single.triggers, single.path, single.body)):
        if factor:
            wholes.append((factor, bags(_ALONE[place], p.k1, p.b)))
    passages = bags((p.passage_title, 0.0, 0.0, 1.0), p.k1, p.b, "chunk") if p.passage else None
    memories = wholes[0][1] if wholes else bags(_ALONE[-1], p.k1, p.b)
    return _Layout(memories, tuple(wholes), passages)


def _terms(p: Bm25Params, query: Query, store: Store) -> dict[str, float]:
    """The weighted words of a query; passages use the words of the body."""
    used = {name for fields in (p.fields, p.single) for name, weight in fields if weight}
    if p.passage:
        used |= {"body", "title"} if p.passage_title else {"body"}
    return informative_terms(query, store, [name for name in FIELDS if name in used], k3=p.k3, most=p.max_terms)


def _best_passages(memories: Rows, matched: Rows, bags: Bags, scores: Column, parents: Rows) -> Ids:
    """The id of the best matched passage of each memory: the lowest id among equals, -1 where no passage matched.

    `matched` are rows of `bags`; `scores` and `parents` are aligned with it.
    """
    # The last row is that of passages without a memory (-1), which are never results.
    wanted = np.zeros(max(memories.max(initial=-1), parents.max(initial=-1)) + 2, np.bool_)
    wanted[memories] = True
    # Only passages of the returned memories are sorted; a table of flags drops the others first.
    rows = wanted[parents].nonzero()[0]
    passages, owners = bags.ids_of(matched[rows]), parents[rows]
    best = best_of_each(owners, passages, -scores[rows])
    passage_of = np.full(len(wanted), -1)
    passage_of[owners[best]] = passages[best]
    return passage_of[memories]
