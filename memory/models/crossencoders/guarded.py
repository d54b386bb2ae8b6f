"""Runs a cross-encoder under a time limit and isolates its failures (feature R1)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from speckit_memory.pipeline.ports import Column, Unavailable
from speckit_memory.pipeline.process.clock import opening, query_ns

BATCH = 8
"""Texts per batch; the very first batch, which measures the speed, has half as many."""
FAILURES = 3
"""Consecutive failures after which the model is not called for `PAUSE_NS`."""
PAUSE_NS = 60_000_000_000


class CrossEncoderModel(Protocol):
    """Reads a query and a text together and scores how well the text answers it (Nogueira and Cho 2019)."""

    def load(self) -> None:
        """Load the files of the model if necessary. May raise any exception."""

    def logits(self, query: str, texts: Sequence[str]) -> Column:
        """Return the log-odds of each text being relevant, shape (n,). May raise any exception; callers handle it."""


class GuardedCrossEncoder:
    """Scores texts from the top, batch by batch, as many as the deadline allows at the measured speed of the model.
    Implements `pipeline.ports.RelevanceModel`.

    A failure is reported as `Unavailable` with a reason; after three in a row the model is not called for 60 seconds
    (circuit breaker, Nygard 2007). Calls of several threads take turns. Loading does not count as query time.
    """

    __slots__ = ("_clock", "_closed_until", "_failures", "_loaded", "_loading", "_model", "_ns_per_text", "_turn")

    def __init__(self, model: CrossEncoderModel, clock: Callable[[], int] = query_ns) -> None:
        """`clock` returns the time in nanoseconds, on the scale of deadlines."""
        self._model = model
        self._clock = clock
        self._turn, self._loading = threading.Lock(), threading.Lock()
        self._loaded = threading.Event()
        self._ns_per_text: float | None = None
        self._failures = 0
        self._closed_until = 0

    def score(self, query: str, texts: Sequence[str], deadline_ns: int | None) -> Column | Unavailable:
        """Return the relevance in [0, 1] of each text, in order; NaN for the rest once the deadline is reached.

        Raises TypeError for arguments that are not text: that is not a failure of the model.
        """
        texts = tuple(texts)
        if absence := self._missing():
            return absence
        patience = -1.0 if deadline_ns is None else max(deadline_ns - self._clock(), 0) / 1e9
        if not self._turn.acquire(timeout=patience):
            return Unavailable("the cross-encoder is busy with another query")
        try:
            return self._resting() or self._read(query, texts, deadline_ns)
        except Exception as error:  # a model is third-party code
            return self._failed(error)
        finally:
            self._turn.release()

    def _missing(self) -> Unavailable | None:
        """Load the model if necessary; return why it is unavailable, None if it is available."""
        if self._loaded.is_set():
            return None
        with opening(), self._loading:
            if self._loaded.is_set():
                return None
            if resting := self._resting():
                return resting
            try:
                self._model.load()
            except Exception as error:  # a model is third-party code
                return self._failed(error)
            self._loaded.set()
            return None

    def _resting(self) -> Unavailable | None:
        if self._failures < FAILURES or self._clock() >= self._closed_until:
            return None
        return Unavailable(f"the cross-encoder failed {self._failures} times in a row and is paused for a while")

    def _failed(self, error: Exception) -> Unavailable:
        self._failures += 1
        self._closed_until = self._clock() + PAUSE_NS
        return Unavailable(f"the cross-encoder failed: {error}")

    def _read(self, query: str, texts: Sequence[str], deadline_ns: int | None) -> Column:
        relevance = np.full(len(texts), np.nan)
        start = 0
        while start < len(texts):
            begun = self._clock()
            # The batch shrinks with the remaining time, so that the deadline is missed by one batch at most.
            size = self._affordable(None if deadline_ns is None else deadline_ns - begun)
            if not size:
                break
            batch = texts[start : start + size]
            logits = np.asarray(self._model.logits(query, batch), np.float64)
            if logits.shape != (len(batch),) or not np.isfinite(logits).all():
                raise ValueError(f"it returned {logits.shape} numbers for {len(batch)} texts, or some are not finite")
            # sigmoid 1 / (1 + e^-x), clipped so that exp does not overflow; logits: (batch,) float64
            relevance[start : start + len(batch)] = 1.0 / (1.0 + np.exp(-np.clip(logits, -500.0, 500.0)))
            self._ns_per_text = (self._clock() - begun) / len(batch)
            self._failures = 0
            start += len(batch)
        return relevance

    def _affordable(self, left_ns: int | None) -> int:
        """Return how many texts can be read in the remaining time."""
        if left_ns is None:
            return BATCH
        if self._ns_per_text is None:
            return BATCH // 2 if left_ns > 0 else 0
        return int(min(BATCH, left_ns / max(self._ns_per_text, 1.0))) if left_ns > 0 else 0
