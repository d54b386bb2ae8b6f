"""Estimates of what a step would read for a query, made before it runs."""

from __future__ import annotations

from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class StepCostEstimate:
    """Counts of what a step reads for one query. Counts that depend on the hits are upper bounds.

    `postings` counts one per memory or passage that holds a word, in every index, once per read;
    `vectors` are the rows compared with the query, `edges` the edges of the causal graph that a walk or a degree reads,
    `feedback_words` words taken from first hits for a second search. `compared_passages` are compared token by token,
    `read_pairs` are read together with the query by a cross-encoder, if there is one.
    """

    postings: int = 0
    vectors: int = 0
    edges: int = 0
    feedback_words: int = 0
    compared_passages: int = 0
    read_pairs: int = 0

    def __add__(self, other: StepCostEstimate) -> StepCostEstimate:
        """The sum of both costs."""
        return StepCostEstimate(*(one + another for one, another in zip(astuple(self), astuple(other), strict=True)))
