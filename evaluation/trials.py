"""Many settings of one pipeline, measured on datasets that are indexed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from config.errors import SpeckitError
from config.exchange import Column
from engine import pipelines
from engine.memory import Memory
from evaluation.dataset import Dataset, DatasetQuery, read
from evaluation.measure import Report, measure
from evaluation.metrics import evaluate
from evaluation.throwaway import throwaway_store
from evaluation.tunable import Setting

Values = Mapping[str, Column]
"""The value of each metric for each query."""

START: Setting = {}
"""The pipeline as it was given."""


@dataclass(frozen=True, slots=True)
class OpenSet:
    """A dataset in a throw-away store, and the judged queries that are asked."""

    dataset: Dataset
    queries: tuple[DatasetQuery, ...]
    memory: Memory
    warnings: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self.dataset.name


def read_sets(folders: Sequence[Path]) -> list[Dataset]:
    """Reads several datasets. Raises SpeckitError for a malformed one, for one without a judged query (E123), and for
    two with one name (E030): figures could not be told apart, and a dataset given twice would be held out from itself.
    """
    sets = [read(folder) for folder in folders]
    for place, dataset in enumerate(sets):
        if not dataset.judged():
            raise SpeckitError("E123", f"no query of '{dataset.folder}' has a relevant document: nothing to go by")
        if dataset.name in [other.name for other in sets[:place]]:
            raise SpeckitError("E030", f"two datasets are named '{dataset.name}'", hint="Give each dataset once.")
    return sets


def sampled(dataset: Dataset, size: int | None, seed: int) -> tuple[DatasetQuery, ...]:
    """The judged queries, or a random sample of them in the order of the dataset."""
    judged = dataset.judged()
    if size is None or size >= len(judged):
        return judged
    rows = np.random.default_rng(seed).choice(len(judged), size, replace=False)
    return tuple(judged[row] for row in np.sort(rows))


@contextmanager
def open_sets(
    sets: Sequence[tuple[Dataset, tuple[DatasetQuery, ...]]],
    pipeline: str,
    *,
    overrides: Mapping[str, str] | None,
    environ: Mapping[str, str],
    progress: Report,
) -> Iterator[list[OpenSet]]:
    """Indexes each dataset once, into a store of its own."""
    with ExitStack() as stack:
        opened = []
        for dataset, queries in sets:
            store = stack.enter_context(
                throwaway_store(dataset, [pipeline], overrides=overrides, environ=environ, progress=progress)
            )
            opened.append(OpenSet(dataset, queries, store.memories[0], store.warnings))
        yield opened


@dataclass
class Trials:
    """Measures settings, each on each dataset at most once. `written` turns a setting into overrides."""

    sets: Sequence[OpenSet]
    pipeline: str
    environ: Mapping[str, str]
    written: Callable[[Setting], Mapping[str, str]]
    now: float
    seed: int
    _known: dict[tuple[int, frozenset[tuple[str, float]]], Values] = field(default_factory=dict)

    @property
    def measured(self) -> int:
        """How many different settings have been measured, on any dataset."""
        return len({setting for _, setting in self._known})

    def possible(self, setting: Setting) -> bool:
        """Whether the pipeline can be built so: some values that are fine alone do not go together."""
        return not pipelines.check(self.pipeline, self.environ, self.written(setting))

    def values(self, place: int, setting: Setting) -> Values:
        """What a setting reaches on the dataset at a place, for each of its queries."""
        key = place, frozenset(setting.items())
        if key not in self._known:
            self._known[key] = self._measured(self.sets[place], setting)
        return self._known[key]

    def _measured(self, opened: OpenSet, setting: Setting) -> Values:
        memory = opened.memory.with_pipeline(self.pipeline, self.written(setting))
        (answers,) = measure([memory], opened.queries, now=self.now, seed=self.seed, progress=lambda _: None)
        judgements = [opened.dataset.judgements[query.id] for query in opened.queries]
        return evaluate([answer.keys for answer in answers], judgements)
