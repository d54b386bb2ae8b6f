"""What a step would read for a query, counted before it is paid."""

from __future__ import annotations

from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """Counts of what a step reads for one query. What depends on what is found is an upper bound.

    `postings` counts one for each memory or passage that holds a word, in every index that is read, as often as it is
    read; `vectors` are rows that the query is compared with, `edges` those of the causal graph that a walk or a degree
    looks at, `feedback_words` further words that are taken from first hits and searched as well. `compared_passages`
    are compared token by token, `read_pairs` read together with the query by a cross-encoder, should there be one.
    """

    postings: int = 0
    vectors: int = 0
    edges: int = 0
    feedback_words: int = 0
    compared_passages: int = 0
    read_pairs: int = 0

    def __add__(self, other: Cost) -> Cost:
        """Both together."""
        return Cost(*(one + another for one, another in zip(astuple(self), astuple(other), strict=True)))
