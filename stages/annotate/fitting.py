"""Leaves out rows that do not fit the query."""

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
    """The criteria of a fitting row."""

    naming: list[str] = Field([], description="Ids of channels whose hits always fit.")
    similarity: str = Field(
        "", description="Id of the channel whose scores are cosines of the bundled vectors; without them, words decide."
    )
    min_evidence: float = Field(
        0.8,
        ge=0,
        le=2,
        description="Minimum of the share of the query's information in a row plus its cosine by static vectors.",
    )
    min_coverage: float = Field(0.6, ge=0, le=1, description="Minimum of that share if there is no such cosine.")
    min_share: float = Field(0.8, ge=0, le=1, description="Minimum score of a row, as a share of the best score.")


class Fitting:
    """Keeps the rows that fit the query, or none: for callers that prefer no answer to a weak one.

    A row fits if a channel of `naming` found it, such as that of trigger phrases. Any other row needs evidence on an
    absolute scale (the share of the query's information, Σ idf of its distinct words, that the memory holds plus the
    cosine of its best passage) and a score close to that of the best row without a naming channel. Cosines of models
    other than the bundled one have another scale: then only words decide. Feature A4.
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
        """The mask of the rows that remain."""
        if not len(ranking):
            return Notes()
        # named: (n,) bool; a finite score means that the channel found the row.
        named = np.isfinite(best_of(ranking.raw, ranking.channels, self._params.naming))
        fits = named | (self._has_evidence(query, ranking, store) & self._is_near_best(ranking.scores, named))
        left_out = int(np.count_nonzero(~fits[: query.limit]))
        warnings = () if fits.any() else ("No memory fits the query.",)
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
        # Scores may be negative (z scores), so the share is taken of the range above the lowest.
        lowest, best = scores.min(), scores[~named].max()
        return np.asarray(scores >= lowest + self._params.min_share * (best - lowest))
