"""Sealing a pool into a ranking, and proving that it stayed as it was. Only the runner may import this module."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from operator import is_

import numpy as np

from speckit_memory.pipeline.model.columns import Mask, Pool
from speckit_memory.pipeline.model.ranking import COLUMNS, Ranking
from speckit_memory.pipeline.ports.immutable import immutable


def seal(pool: Pool) -> Ranking:
    """A ranking of the pool's rows, in the pool's order."""
    c = pool.candidates
    ranking: Ranking = object.__new__(Ranking)  # type: ignore[arg-type]  # past the constructor that refuses everybody else
    for name, value in {
        "ids": immutable(c.ids),
        "scores": immutable(pool.score),
        "parents": immutable(c.parents),
        "passages": immutable(c.passages),
        "chunk_hits": immutable(pool.chunk_hits),
        "raw": immutable(c.raw),
        "rank": immutable(c.rank),
        "channels": c.channels,
    }.items():
        object.__setattr__(ranking, name, value)
    return ranking


def narrow(pool: Pool, keep: Mask) -> Pool:
    """The pool without the rows that a mask hides. A mask can neither permute, duplicate nor rescore."""
    return pool.take(np.flatnonzero(keep))


@dataclass(frozen=True, slots=True)
class Seal:
    """Remembers what a ranking was, to tell afterwards whether it still is.

    `columns` are the objects that the ranking was made of. Their values cannot change short of writing into foreign
    memory, which the digest finds out for ids and scores.
    """

    ranking: Ranking
    columns: tuple[object, ...]
    digest: bytes

    @classmethod
    def of(cls, pool: Pool) -> Seal:
        """A sealed ranking of the pool's rows."""
        ranking = seal(pool)
        return cls(ranking, _columns(ranking), _digest(ranking))

    def broken(self) -> bool:
        """True when the class or any column is another object, or ids or scores have other values, than at sealing."""
        same = type(self.ranking) is Ranking and all(map(is_, _columns(self.ranking), self.columns))
        return not same or _digest(self.ranking) != self.digest


def _columns(ranking: Ranking) -> tuple[object, ...]:
    return tuple(getattr(ranking, name, None) for name in COLUMNS)


def _digest(ranking: Ranking) -> bytes:
    return blake2b(ranking.ids.tobytes() + ranking.scores.tobytes(), digest_size=16).digest()
