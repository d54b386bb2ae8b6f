"""Puts the product together: the only module that names concrete components."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING
from uuid import uuid4

from channels.bm25 import Bm25
from channels.constitutional import Constitutional
from channels.degree import Degree
from channels.fts5 import Fts5
from channels.graph import Graph
from channels.handover import Handover
from channels.identifier import Identifier
from channels.phrase import Phrase
from channels.trigger import Trigger
from channels.vector import Vector
from config.extensions import ExtensionSettings, extensions_in_force
from config.settings import CROSS_ENCODER_VARIABLE
from engine.models import QueryModels
from engine.once import Once
from engine.usage import Usage
from memory.indexing import Analyser, Indexer, crossencoders, embedders
from memory.store.connection import Database
from memory.store.read_model import ReadModel
from pipeline.composition import Pipeline
from pipeline.contracts import Role
from pipeline.registry import Registry
from signals.causal import Causal
from signals.coactivation import Coactivation
from signals.composite import Composite
from signals.confidence import Confidence
from signals.contiguity import Contiguity
from signals.encoding_intent import EncodingIntent
from signals.field_match import FieldMatch
from signals.folder_score import FolderScore
from signals.hierarchy import Hierarchy
from signals.importance import Importance
from signals.interference import Interference
from signals.novelty import Novelty
from signals.recency import Recency
from signals.session import Session
from signals.temporal import Temporal
from signals.validation import Validation
from stages.annotate.anchor_filter import AnchorFilter
from stages.annotate.attribution import Attribution
from stages.annotate.constitutional_guarantee import ConstitutionalGuarantee
from stages.annotate.duplicates import Duplicates
from stages.annotate.encoder_notice import EncoderNotice
from stages.annotate.evidence_gap import EvidenceGap
from stages.annotate.session_dedup import SessionDedup
from stages.annotate.state_filter import StateFilter
from stages.annotate.superseded import Superseded
from stages.annotate.token_budget import TokenBudget
from stages.candidates.complexity import Complexity
from stages.candidates.coverage import Coverage
from stages.candidates.embedding_expansion import EmbeddingExpansion
from stages.candidates.expansion import Expansion
from stages.candidates.fallback import Fallback
from stages.candidates.folder_prefilter import FolderPrefilter
from stages.candidates.intent import Intent
from stages.candidates.pressure import Pressure
from stages.candidates.router import Router
from stages.candidates.signal_vocabulary import SignalVocabulary
from stages.candidates.spelling import Spelling
from stages.fusion.rrf import Rrf
from stages.fusion.rsf import Rsf
from stages.fusion.single import Single
from stages.fusion.z_score import ZScore
from stages.rerank.channel_floor import ChannelFloor
from stages.rerank.collapse import Collapse
from stages.rerank.confidence_cut import ConfidenceCut
from stages.rerank.context_diversity import ContextDiversity
from stages.rerank.cross_encoder import CrossEncoder
from stages.rerank.maxsim import Maxsim
from stages.rerank.min_max import MinMax
from stages.rerank.mmr import Mmr
from stages.rerank.pin import Pin
from stages.rerank.regularise import Regularise
from stages.rerank.relevance_floor import RelevanceFloor
from stages.rerank.standardise import Standardise

if TYPE_CHECKING:
    from pipeline.isolation.host import Host

COMPONENTS: tuple[tuple[Role, type[object]], ...] = (
    (Role.UNDERSTANDER, Complexity),
    (Role.UNDERSTANDER, Coverage),
    (Role.UNDERSTANDER, EmbeddingExpansion),
    (Role.UNDERSTANDER, Expansion),
    (Role.UNDERSTANDER, FolderPrefilter),
    (Role.UNDERSTANDER, Intent),
    (Role.UNDERSTANDER, Pressure),
    (Role.UNDERSTANDER, Router),
    (Role.UNDERSTANDER, SignalVocabulary),
    (Role.UNDERSTANDER, Spelling),
    (Role.CHANNEL, Bm25),
    (Role.CHANNEL, Constitutional),
    (Role.CHANNEL, Degree),
    (Role.CHANNEL, Fts5),
    (Role.CHANNEL, Graph),
    (Role.CHANNEL, Handover),
    (Role.CHANNEL, Identifier),
    (Role.CHANNEL, Phrase),
    (Role.CHANNEL, Trigger),
    (Role.CHANNEL, Vector),
    (Role.RECOVERER, Fallback),
    (Role.FUSER, Rrf),
    (Role.FUSER, Rsf),
    (Role.FUSER, Single),
    (Role.FUSER, ZScore),
    (Role.SIGNAL, Causal),
    (Role.SIGNAL, Coactivation),
    (Role.SIGNAL, Composite),
    (Role.SIGNAL, Confidence),
    (Role.SIGNAL, Contiguity),
    (Role.SIGNAL, EncodingIntent),
    (Role.SIGNAL, FieldMatch),
    (Role.SIGNAL, FolderScore),
    (Role.SIGNAL, Hierarchy),
    (Role.SIGNAL, Importance),
    (Role.SIGNAL, Interference),
    (Role.SIGNAL, Novelty),
    (Role.SIGNAL, Recency),
    (Role.SIGNAL, Session),
    (Role.SIGNAL, Temporal),
    (Role.SIGNAL, Validation),
    (Role.RERANKER, ChannelFloor),
    (Role.RERANKER, Collapse),
    (Role.RERANKER, ConfidenceCut),
    (Role.RERANKER, ContextDiversity),
    (Role.RERANKER, CrossEncoder),
    (Role.RERANKER, Maxsim),
    (Role.RERANKER, MinMax),
    (Role.RERANKER, Mmr),
    (Role.RERANKER, Pin),
    (Role.RERANKER, Regularise),
    (Role.RERANKER, RelevanceFloor),
    (Role.RERANKER, Standardise),
    (Role.ANNOTATOR, AnchorFilter),
    (Role.ANNOTATOR, Attribution),
    (Role.ANNOTATOR, ConstitutionalGuarantee),
    (Role.ANNOTATOR, Duplicates),
    (Role.ANNOTATOR, EncoderNotice),
    (Role.ANNOTATOR, EvidenceGap),
    (Role.ANNOTATOR, SessionDedup),
    (Role.ANNOTATOR, StateFilter),
    (Role.ANNOTATOR, Superseded),
    (Role.ANNOTATOR, TokenBudget),
)


def registry(environ: Mapping[str, str] | None = None, root: Path | None = None) -> Registry:
    """Every component of the product and of installed extensions, which run where this environment and workspace say.

    Frozen, and the same object for the same settings. Raises SpeckitError for what is wrongly set.
    """
    return _registry(extensions_in_force(environ, root))


_hosts: list[Host] = []


@cache
def _registry(extensions: ExtensionSettings) -> Registry:
    registry = Registry()
    for role, component in COMPONENTS:
        registry.add(role, component)
    if extensions.mode == "trusted":
        registry.add_entry_points()
    elif extensions.mode == "isolated":
        # imported by who wants it: it makes the start-up of everybody else no slower
        from pipeline.isolation.extensions import IsolatedExtensions
        from pipeline.isolation.host import Host

        host = Host(extensions.memory_mb)
        _hosts.append(host)
        registry.add_elsewhere(IsolatedExtensions(host))
    else:
        registry.leave_out()
    return registry.freeze()


def end_extensions() -> None:
    """Ends the processes of isolated extensions: for who ends this process without the interpreter's own shutdown."""
    for host in _hosts:
        host.end()


def looks_back(pipeline: Pipeline) -> bool:
    """Whether the pipeline asks what was sent before, so that it must be noted."""
    return any(isinstance(step.component, SessionDedup) for step in pipeline.annotate)


class TextModels:
    """What reads texts, whatever store they are in. Parts come to life when they are first needed."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """`environ` may name models."""
        self.guard = RLock()
        self._environ = environ

    @Once
    def embedder(self) -> embedders.Embedder:
        """The model that the environment names, else the bundled one; read at first use (feature I6)."""
        return embedders.chosen(self._environ)

    @Once
    def analyser(self) -> Analyser:
        """The analyser that makes the words of documents and queries."""
        return Analyser()

    @Once
    def cross_encoder(self) -> crossencoders.NoCrossEncoder | crossencoders.GuardedCrossEncoder:
        """The model that reads a query together with a text, if the environment names one (feature R1)."""
        return crossencoders.chosen(self._environ.get(CROSS_ENCODER_VARIABLE, ""))


class OpenStore:
    """One open file with everything that reads and writes it. Parts come to life when they are first needed."""

    def __init__(self, database: Database, root: Path, models: TextModels) -> None:
        """`root` is the folder that keys of memories are relative to."""
        self.guard = RLock()
        self.name = uuid4().hex
        """Tells it from every other store that was ever opened."""
        self.database = database
        self.usage = Usage(database)
        self._root = root
        self._models = models

    @property
    def embedder(self) -> embedders.Embedder:
        """The model that makes vectors."""
        return self._models.embedder

    @property
    def analyser(self) -> Analyser:
        """The analyser that makes words."""
        return self._models.analyser

    @Once
    def read_model(self) -> ReadModel:
        """The in-memory view that queries run on."""
        models = QueryModels(self.database, self.embedder, self.analyser, self._models.cross_encoder)
        return ReadModel(self.database, models)

    @Once
    def indexer(self) -> Indexer:
        """The writer of documents."""
        return Indexer(self.database, self.embedder, self.analyser, self._root)

    @Once
    def indexer_without_model(self) -> Indexer:
        """A writer that leaves the vectors for later."""
        return Indexer(self.database, None, self.analyser, self._root)
