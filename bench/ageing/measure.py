"""Asks the judged queries of a moment of the default and of every variant, each through the door of production."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np

from bench.ageing.checkpoint import Asked, Moment
from bench.ageing.variants import CONTROL, Variant
from speckit_memory.engine import Memory
from speckit_memory.engine.answers.results import ResultRow
from speckit_memory.evaluation.statistics.metrics import evaluate
from speckit_memory.pipeline.ports import Column

ROWS = 10
"""Rows of an answer."""
QUALITY = ("nDCG@10", "MRR@5")
STALE = ("stale@1", "stale@5", "untold@1", "untold@5")
"""The share of the first row, or of the first five, that answers wrongly because it was so once; `untold` counts those
alone that bear no mark of being superseded. Of queries that something stale exists for; NaN for the others."""
TOKENS = "tokens"
"""Tokens of titles and excerpts of an answer."""

Figures = dict[str, Column]
"""By metric, a value for each query."""


def measured(moment: Moment, variants: Sequence[Variant], kept: Path | None = None) -> dict[str, Figures]:
    """The figures of the default and of each variant, aligned with the queries of the moment.

    What stands in the file `kept` is not measured again; what is measured is written there.
    """
    sizes: dict[str, int] = {}
    chosen = (Variant(CONTROL, ""), *variants)
    known: dict[str, dict[str, list[float]]] = (
        json.loads(kept.read_text(encoding="utf-8")) if kept and kept.exists() else {}
    )
    for variant in chosen:
        if variant.name not in known:
            found = _figures(moment, variant, sizes)
            known[variant.name] = {metric: column.tolist() for metric, column in found.items()}
            if kept:
                kept.write_text(json.dumps(known), encoding="utf-8")
    return {
        variant.name: {metric: np.array(column) for metric, column in known[variant.name].items()} for variant in chosen
    }


def _figures(moment: Moment, variant: Variant, sizes: dict[str, int]) -> Figures:
    with opened(moment, variant) as memory:
        answers = [
            memory.search(
                query.text, limit=ROWS, session=query.session, dedup=False, now=moment.now, deadline_ms=None
            ).results
            for query in moment.queries
        ]  # fmt: skip
        texts = [f"{row.title}\n{row.snippet}" for rows in answers for row in rows]
        new = sorted(set(texts) - set(sizes))
        sizes |= dict(zip(new, memory.models.count_tokens(new), strict=True))
    found = evaluate([[row.key for row in rows] for rows in answers], [query.grades for query in moment.queries])
    figures = {metric: found[metric] for metric in QUALITY}
    stale = [_stale(query, rows) for query, rows in zip(moment.queries, answers, strict=True)]
    figures |= {metric: np.array(column) for metric, column in zip(STALE, zip(*stale, strict=True), strict=True)}
    figures[TOKENS] = np.array([float(sum(sizes[f"{row.title}\n{row.snippet}"] for row in rows)) for rows in answers])
    return figures


def _stale(query: Asked, rows: Sequence[ResultRow]) -> tuple[float, float, float, float]:
    if not query.stale:
        return (np.nan,) * 4
    wrong = [row.key in query.stale for row in rows[:5]]
    untold = [was and not row.notes.get("superseded_by") for row, was in zip(rows, wrong, strict=False)]
    return float(sum(wrong[:1])), sum(wrong) / 5, float(sum(untold[:1])), sum(untold) / 5


@contextmanager
def opened(moment: Moment, variant: Variant) -> Iterator[Memory]:
    """The store of a moment through a variant's pipeline; a copy of it, where something is undone in it."""
    with TemporaryDirectory(prefix="ageing-") as name:
        store, root = moment.store, moment.folder
        if variant.undone is not None:
            root = Path(name)
            shutil.copytree(moment.store.parent, root / moment.store.parent.name)
            store = root / moment.store.relative_to(moment.folder)
            with patch("time.time", lambda: moment.now), _memory(store, root, {}) as memory:
                variant.undone(memory)
        with _memory(store, root, variant.environ, variant) as memory:
            yield memory


def _memory(store: Path, root: Path, environ: Mapping[str, str], variant: Variant | None = None) -> Memory:
    return Memory.open(
        store,
        variant.pipeline if variant else None,
        root=root,
        environ=environ,
        create=False,
        strict=True,
        shadows=False,
    )
