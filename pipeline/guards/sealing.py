"""Seals a pool into a ranking, and verifies that it stays unchanged. Only the runner may import this module."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from operator import is_

import numpy as np

from speckit_memory.pipeline.model.columns import Mask, Pool
from speckit_memory.pipeline.model.ranking import COLUMNS, Ranking
from speckit_memory.pipeline.ports.values import immutable


def seal(pool: Pool) -> Ranking:
    """A ranking of the pool's rows, in the pool's order."""
    c = pool.candidates
    ranking: Ranking = object.__new__(Ranking)  # type: ignore[arg-type]  # bypasses the constructor, which always raises
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
        # Ranking.__setattr__ always raises, so the fields are set through `object`.
        object.__setattr__(ranking, name, value)
    return ranking


def narrow(pool: Pool, keep: Mask) -> Pool:
    """The pool without the rows that a mask hides. A mask can neither permute, duplicate nor rescore."""
    return pool.take(np.flatnonzero(keep))


@dataclass(frozen=True, slots=True)
class Seal:
    """The state of a ranking at sealing, to verify later that it is unchanged.

    `columns` are the objects that the ranking was made of. Their values cannot change except by writing into foreign
    memory, which the digest detects for ids and scores.
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
        """True if the class or any column is another object than at sealing, or ids or scores have other values."""
        same = type(self.ranking) is Ranking and all(map(is_, _columns(self.ranking), self.columns))
        return not same or _digest(self.ranking) != self.digest


def _columns(ranking: Ranking) -> tuple[object, ...]:
    return tuple(getattr(ranking, name, None) for name in COLUMNS)


def _digest(ranking: Ranking) -> bytes:
    # 128 bits, without a key: it detects writes, not forgery by code that could recompute it.
    return blake2b(ranking.ids.tobytes() + ranking.scores.tobytes(), digest_size=16).digest()
