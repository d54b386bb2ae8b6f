"""A cross-encoder under a time limit, which may fail without harm (feature R1)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from speckit_memory.memory.models.crossencoders.protocol import CrossEncoder
from speckit_memory.pipeline.ports import Column, Unavailable
from speckit_memory.pipeline.ports.immutable import own
from speckit_memory.pipeline.process.clock import opening, query_ns

BATCH = 8
"""Texts read at a time; the first batch of all, which measures the speed, has half as many."""
FAILURES = 3
"""So many in a row, and the model is left alone for a while."""
PAUSE_NS = 60_000_000_000


class GuardedCrossEncoder:
    """Reads texts from the top, batch by batch, as many as the deadline allows at the measured speed of the model.
    Implements `pipeline.ports.RelevanceModel`.

    A model that fails is an absence with a reason; after three failures in a row it is not asked for 60 seconds
    (circuit breaker, Nygard 2007). Calls of several threads take turns. To load the model is no query's time.
    """

    __slots__ = ("_clock", "_closed_until", "_failures", "_loaded", "_loading", "_model", "_ns_per_text", "_turn")

    def __init__(self, model: CrossEncoder, clock: Callable[[], int] = query_ns) -> None:
        """`clock` gives the nanoseconds in which deadlines are told."""
        self._model = model
        self._clock = clock
        self._turn, self._loading = threading.Lock(), threading.Lock()
        self._loaded = threading.Event()
        self._ns_per_text: float | None = None
        self._failures = 0
        self._closed_until = 0

    def score(self, query: str, texts: Sequence[str], deadline_ns: int | None) -> Column | Unavailable:
        """Relevance [0, 1] of each text, in order; NaN for the tail that the deadline left no time for.

        Raises TypeError for what is no text: that is no failure of the model.
        """
        query, texts = own(query), tuple(map(own, texts))
        if absence := self._missing():
            return absence
        patience = -1.0 if deadline_ns is None else max(deadline_ns - self._clock(), 0) / 1e9
        if not self._turn.acquire(timeout=patience):
            return Unavailable("the cross-encoder is busy with another query")
        try:
            return self._resting() or self._read(query, texts, deadline_ns)
        except Exception as error:  # a model is other people's code
            return self._failed(error)
        finally:
            self._turn.release()

    def _missing(self) -> Unavailable | None:
        """Loads the model unless that is done; why it cannot be had, None when it can."""
        if self._loaded.is_set():
            return None
        with opening(), self._loading:
            if self._loaded.is_set():
                return None
            if resting := self._resting():
                return resting
            try:
                self._model.load()
            except Exception as error:  # a model is other people's code
                return self._failed(error)
            self._loaded.set()
            return None

    def _resting(self) -> Unavailable | None:
        if self._failures < FAILURES or self._clock() >= self._closed_until:
            return None
        return Unavailable(f"the cross-encoder failed {self._failures} times in a row and is left alone a while")

    def _failed(self, error: Exception) -> Unavailable:
        self._failures += 1
        self._closed_until = self._clock() + PAUSE_NS
        return Unavailable(f"the cross-encoder failed: {error}")

    def _read(self, query: str, texts: Sequence[str], deadline_ns: int | None) -> Column:
        relevance = np.full(len(texts), np.nan)
        start = 0
        while start < len(texts):
            begun = self._clock()
            size = self._affordable(None if deadline_ns is None else deadline_ns - begun)
            if not size:
                break
            batch = texts[start : start + size]
            logits = np.asarray(self._model.logits(query, batch), np.float64)
            if logits.shape != (len(batch),) or not np.isfinite(logits).all():
                raise ValueError(f"it gave {logits.shape} numbers for {len(batch)} texts, or some are not finite")
            relevance[start : start + len(batch)] = 1.0 / (1.0 + np.exp(-np.clip(logits, -500.0, 500.0)))
            self._ns_per_text = (self._clock() - begun) / len(batch)
            self._failures = 0
            start += len(batch)
        return relevance

    def _affordable(self, left_ns: int | None) -> int:
        """How many texts can be read in the time that is left."""
        if left_ns is None:
            return BATCH
        if self._ns_per_text is None:
            return BATCH // 2 if left_ns > 0 else 0
        return int(min(BATCH, left_ns / max(self._ns_per_text, 1.0))) if left_ns > 0 else 0
