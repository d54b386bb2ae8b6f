"""`eval tokens`: measures how much relevant content reaches an agent within a token budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

from speckit_memory.engine.api.memory import Memory
from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.evaluation.ground_truth.ground import GroundSource, GroundTruth
from speckit_memory.evaluation.measuring.measure import EvaluationProgress
from speckit_memory.evaluation.running.report import dataset_title, sentence
from speckit_memory.evaluation.running.run import Evaluation, EvaluationOptions
from speckit_memory.evaluation.statistics.comparison import Comparison, Values, compare
from speckit_memory.evaluation.statistics.report import Report, Table, as_document, warnings_of
from speckit_memory.evaluation.tokens.recall_per_token import (
    COMPARED,
    FIGURES,
    Answerer,
    SentAnswer,
    at,
    columns,
    figures_of,
)
from speckit_memory.memory.parsing.analysis import Analyser
from speckit_memory.pipeline.configuration.loading import PipelineSource

# Simpler memories for comparison: they send the top passages of one search in order until the budget is full.
#
# They send no headings, reasons or notes, only the key of each memory, so that the budget goes to text.

PEERS = {"fts5": "passages by FTS5", "vector": "passages by vectors"}
"""The presets that the peers search with, and their names in reports."""
ASKED = 50
"""Number of memories requested; no measured budget has room for all."""
WHOLE = 100_000
"""More characters than any passage has."""


def peer(name: str, memory: Memory) -> Answerer:
    """The answerer of a peer, over a memory that searches with the peer's preset."""

    def answer(query: DatasetQuery, budget: int) -> SentAnswer:
        result = memory.search(query.text, limit=ASKED, folder=query.folder, deadline_ms=None, snippet=WHOLE)
        sent: list[tuple[str, str]] = []
        total = 0
        for row in result.results:
            text, tokens = _cut(memory, row.key, row.snippet, budget - total)
            if not text:
                break
            sent.append((row.key, text))
            total += tokens
            if text != row.snippet:
                break
        return SentAnswer(tuple(sent), total)

    return Answerer(PEERS[name], answer, peer=True)


def _cut(memory: Memory, key: str, text: str, room: int) -> tuple[str, int]:
    """As much of a passage, below its key, as fits into `room` tokens, and the tokens of both."""
    while text:
        tokens = memory.models.count_tokens([f"{key}\n{text}\n\n"])[0]
        if tokens <= room:
            return text, tokens
        text = text[: min(len(text) - 1, len(text) * max(room, 0) // tokens)]
    return "", 0


Answering = Callable[[Memory], Sequence[Answerer]]
"""Makes the ways of answering through one pipeline; their names are unique over all pipelines."""


def measure_tokens(
    source: GroundSource,
    pipelines: Sequence[PipelineSource],
    answering: Answering,
    *,
    budgets: Sequence[int],
    peers: bool = True,
    overrides: Mapping[str, str] | None = None,
    **options: Unpack[EvaluationOptions],
) -> TokenReport:
    """Answers every query in every way at every budget; all ways are compared with the first one.

    Args:
        source: Dataset or other source to measure on.
        pipelines: Paths, presets or values; none for the pipeline that a search would use.
        answering: Makes the answers, as the interface that sends them does.
        budgets: Maximum numbers of tokens of an answer.
        peers: Whether the presets of `PEERS` answer too.
        overrides: YAML values by "step.parameter", applied to all pipelines but the peers.
        options: See `EvaluationOptions`.

    Raises:
        SpeckitError: E123 without a judged query, or with every problem of the pipelines or the source.
    """
    evaluation = Evaluation(source, **options)
    chosen = evaluation.load(pipelines, overrides)
    (ground,) = evaluation.grounds
    dataset, asked, forward = ground.dataset, evaluation.sample(ground), evaluation.progress
    beside = evaluation.load(list(PEERS)) if peers else []
    terms = _Terms()
    with ground.opened(dataset, [*chosen, *beside], environ=evaluation.environ, progress=forward) as store:
        # the peers' pipelines follow the chosen ones
        ours = [one for memory in store.memories[: len(chosen)] for one in answering(memory)]
        others = zip(PEERS, store.memories[len(chosen) :], strict=True) if peers else ()
        answerers = [*ours, *(peer(name, memory) for name, memory in others)]
        held = _words_of_documents(ground, {key for query in asked for key in dataset.judgements[query.id]}, terms)
        count = store.memories[0].models.count_tokens
        rows: dict[str, list[dict[str, float]]] = {answerer.name: [] for answerer in answerers}
        total = len(answerers) * len(asked)
        for place, query in enumerate(asked):
            grades = dataset.judgements[query.id]
            for turn, answerer in enumerate(answerers, start=1):
                figures: dict[str, float] = {}
                for budget in budgets:
                    sent = answerer.answer(query, budget)
                    found = figures_of(sent, query, grades, held, terms, count)
                    figures |= {at(name, budget): value for name, value in found.items()}
                rows[answerer.name].append(figures)
                forward(EvaluationProgress("search", place * len(answerers) + turn, total))
        warnings = store.warnings
    values: dict[str, Values] = {name: columns(of) for name, of in rows.items()}
    first, *further = values
    compared = [at(figure, budget) for budget in budgets for figure in COMPARED]
    return TokenReport(
        dataset=dataset.name,
        documents=len(dataset.keys),
        queries=len(asked),
        no_relevant=len(dataset.queries) - len(dataset.judged()),
        budgets=tuple(budgets),
        values=values,
        peers=frozenset(answerer.name for answerer in answerers if answerer.peer),
        comparisons=compare(values, [(first, other) for other in further], metrics=compared),
        warnings=(*warnings, *ground.warnings),
    )


class _Terms:
    """Extracts the stems of a text without stop words, as the lexical channels do."""

    def __init__(self) -> None:
        self._analyser = Analyser()

    def __call__(self, text: str) -> frozenset[str]:
        return frozenset(self._analyser.tokens(text))


def _words_of_documents(ground: GroundTruth, wanted: set[str], terms: _Terms) -> dict[str, frozenset[str]]:
    """The words of the judged documents."""
    return {
        document.key: terms(f"{document.title}\n{document.text}")
        for document in ground.documents
        if document.key in wanted
    }


_WHOLE = ("memories", "tokens")


@dataclass(frozen=True, slots=True)
class TokenReport:
    """The figures of answers, by answerer and budget. `values` holds every figure of every query.

    `peers` names the answerers that are simpler systems. `queries` were scored; `no_relevant` more have no relevant
    document and were left out. `warnings` are sentences on the limits of the figures.
    """

    dataset: str
    documents: int
    queries: int
    no_relevant: int
    budgets: tuple[int, ...]
    values: Mapping[str, Values]
    peers: frozenset[str]
    comparisons: tuple[Comparison, ...]
    warnings: tuple[str, ...] = ()
    ENTRIES: ClassVar = {
        "no_relevant": "excluded.no_relevant",
        "budgets": "",
        "values": "",
        "peers": "",
        "answers": "answers",
    }

    def mean(self, name: str, figure: str, budget: int) -> float:
        """The mean of a figure over all queries."""
        return float(self.values[name][at(figure, budget)].mean())

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The mean of every figure, by answerer and budget."""
        return [
            {
                "name": name,
                "peer": name in self.peers,
                "budgets": {
                    budget: {figure: self.mean(name, figure, budget) for figure in FIGURES} for budget in self.budgets
                },
            }
            for name in self.values
        ]

    def as_report(self) -> Report:
        """A table for each budget, and a sentence for each comparison."""
        tables = []
        for budget in self.budgets:
            rows = [[f"of {budget:,} tokens", *FIGURES]]
            rows += [[name, *(self._cell(name, figure, budget) for figure in FIGURES)] for name in self.values]
            tables.append(Table(rows))
        return Report(
            dataset_title(self.dataset, self.documents, self.queries, self.no_relevant),
            verdict="\n".join(sentence(comparison, self.queries) for comparison in self.comparisons),
            tables=tables,
            notes=warnings_of(self.warnings),
            data=as_document(self),
        )

    def _cell(self, name: str, figure: str, budget: int) -> str:
        mean = self.mean(name, figure, budget)
        return f"{mean:.1f}" if figure in _WHOLE else f"{mean:.3f}"
