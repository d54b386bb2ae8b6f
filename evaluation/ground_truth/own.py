"""The user's own memories as a source to measure on, from the first day; nothing is written to the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from speckit_memory.config.workspace.settings import EVALUATION_VARIABLE, Settings, settings
from speckit_memory.engine.api.memory import Memory
from speckit_memory.evaluation.datasets.dataset import Dataset
from speckit_memory.evaluation.ground_truth.ground import GroundTruth, digest
from speckit_memory.evaluation.ground_truth.own_documents import own_documents
from speckit_memory.evaluation.ground_truth.own_queries import own_queries
from speckit_memory.evaluation.ground_truth.used_queries import used_queries
from speckit_memory.evaluation.measuring.measure import OnMeasured
from speckit_memory.evaluation.measuring.temporary_store import ThrowawayStore
from speckit_memory.pipeline.configuration.loading import PipelineSource

SEED = 20
KNOWN_ITEM = (
    "these queries are made of the words of the memories that answer them, which favours lexical search: a gain of "
    "vectors is worth more than it looks here, a loss less"
)
BY_USE = "only memories in served answers could be used: a memory that no pipeline found so far is not judged"


@dataclass(frozen=True, slots=True)
class OwnSource:
    """The memories of a store, with made queries, or with `from_use` recorded queries judged by the use of their
    answers.

    `window` selects among the made queries: the second window shares none with the first.
    """

    db: Path | None = None
    from_use: bool = False
    window: int = 1

    @property
    def name(self) -> str:
        """The name shown in progress bars."""
        return "own memories"

    def ground(self, environ: Mapping[str, str]) -> GroundTruth:
        """Reads the store and makes the queries.

        Raises SpeckitError: E010 without a store, E125 with the reasons when too few queries can be made.
        """
        config = settings(self.db, environ=environ)
        with Memory.open(config.db, "bm25", root=config.root, environ=environ, create=False, shadows=False) as memory:
            documents = own_documents(memory)
        made = (
            used_queries(documents, config.db)
            if self.from_use
            else own_queries(documents, seed=SEED, window=self.window)
        )
        keys = frozenset(one.document.key for one in documents)
        dataset = Dataset(config.root, keys, made.queries, made.judgements)
        content = (f"{one.document.key}\n{one.content}\n".encode() for one in documents)
        return GroundTruth(
            dataset=dataset,
            opened=partial(_opened, config),
            digest=digest(dataset, content),
            documents=tuple(one.document for one in documents),
            unanswerable=made.unanswerable,
            warnings=(BY_USE if self.from_use else KNOWN_ITEM, *made.missing),
            by_use=self.from_use,
        )


@contextmanager
def _opened(
    config: Settings,
    dataset: Dataset,  # noqa: ARG001 -- the store holds it already
    pipelines: Sequence[PipelineSource],
    *,
    environ: Mapping[str, str] | None,
    progress: OnMeasured,  # noqa: ARG001 -- nothing is indexed
) -> Iterator[ThrowawayStore]:
    """Opens the store itself: searches alone change nothing in it, and nothing is recorded."""
    # searches for measurement must not enter the log of live queries
    silent = {**(config.environ if environ is None else environ), EVALUATION_VARIABLE: "off"}
    with ExitStack() as stack:
        first = stack.enter_context(
            Memory.open(config.db, pipelines[0], root=config.root, environ=silent, create=False, shadows=False)
        )
        others = [stack.enter_context(first.using(pipeline)) for pipeline in pipelines[1:]]
        yield ThrowawayStore((first, *others), 0.0, ())
