"""Leaves out what does not fit the question."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.arithmetic import best_of
from speckit_memory.pipeline.model.columns import Mask, Notes, Query
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext
from speckit_memory.pipeline.running.lookup import information_held


class FittingParams(Params):
    """What fits."""

    naming: list[str] = Field([], description="Ids of channels; what they found was meant and always fits.")
    similarity: str = Field(
        "", description="Id of the channel whose scores are cosines of the bundled vectors; without them, words decide."
    )
    min_evidence: float = Field(
        0.8,
        ge=0,
        le=2,
        description="The share of the question's information that a row holds, plus its cosine by static vectors.",
    )
    min_coverage: float = Field(0.6, ge=0, le=1, description="That share alone, where there is no such cosine.")
    min_share: float = Field(0.8, ge=0, le=1, description="Share of the best score that a row must come to.")


class Fitting:
    """Keeps the rows that fit the question, or none: for who would rather have no answer than a weak one.

    A row fits if a channel of `naming` found it, such as that of trigger phrases. Any other needs evidence on an
    absolute scale, the share of the question's information (Σ idf of its distinct words) that the memory holds plus the
    cosine of its best passage, and a score near that of the best row that nothing names. The cosines of another model
    than the bundled one lie elsewhere on that scale: then words decide. Feature A4.
    """

    about = About(features=("A4",))
    Params = FittingParams

    def __init__(self, params: FittingParams) -> None:
        self._params = params

    @classmethod
    def check(cls, params: FittingParams, context: PipelineContext) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """The channels are declared."""
        named = [(("naming", place), channel) for place, channel in enumerate(params.naming)]
        return context.undeclared([*named, *([(("similarity",), params.similarity)] if params.similarity else [])])

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """Which rows stay."""
        if not len(ranking):
            return Notes()
        named = np.isfinite(best_of(ranking.raw, ranking.channels, self._params.naming))
        fits = named | (self._has_evidence(query, ranking, store) & self._is_near_best(ranking.scores, named))
        left_out = int(np.count_nonzero(~fits[: query.limit]))
        warnings = () if fits.any() else ("No memory fits the question.",)
        return Notes(overall={"unfit": left_out}, warnings=warnings, keep=fits)

    def _has_evidence(self, query: Query, ranking: Ranking, store: Store) -> Mask:
        terms = tuple(dict.fromkeys(query.terms))
        if not terms:
            return np.ones(len(ranking), np.bool_)
        held = information_held(terms, ranking.parents, store.lexicon, store.attributes.count)
        cosine = best_of(ranking.raw, ranking.channels, (self._params.similarity,))
        if not (np.isfinite(cosine).any() and store.vectors.static):
            return np.asarray(held >= self._params.min_coverage)
        cosine = np.nan_to_num(cosine, nan=0.0, posinf=0.0, neginf=0.0)
        return np.asarray(held + cosine >= self._params.min_evidence)

    def _is_near_best(self, scores: Column, named: Mask) -> Mask:
        if named.all():
            return np.zeros(len(scores), np.bool_)
        lowest, best = scores.min(), scores[~named].max()
        return np.asarray(scores >= lowest + self._params.min_share * (best - lowest))
