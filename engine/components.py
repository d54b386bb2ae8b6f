"""Assembles the product: the only module that names concrete components."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speckit_memory.channels.bm25 import Bm25
from speckit_memory.channels.community import Community
from speckit_memory.channels.constitutional import Constitutional
from speckit_memory.channels.dated import Dated
from speckit_memory.channels.degree import Degree
from speckit_memory.channels.fts5 import Fts5
from speckit_memory.channels.graph import Graph
from speckit_memory.channels.handover import Handover
from speckit_memory.channels.identifier import Identifier
from speckit_memory.channels.learned_trigger import LearnedTrigger
from speckit_memory.channels.phrase import Phrase
from speckit_memory.channels.surface import Surface
from speckit_memory.channels.trigger import Trigger
from speckit_memory.channels.vector import Vector
from speckit_memory.config.workspace.workspace_file import ExtensionSettings, extensions_in_force
from speckit_memory.pipeline.roles.contracts import (
    Annotator,
    Channel,
    Fuser,
    Recoverer,
    Reranker,
    Role,
    Signal,
    Understander,
)
from speckit_memory.pipeline.roles.registry import Registry, installed_extensions
from speckit_memory.signals.causal import Causal
from speckit_memory.signals.centrality import Centrality
from speckit_memory.signals.coactivation import Coactivation
from speckit_memory.signals.composite import Composite
from speckit_memory.signals.confidence import Confidence
from speckit_memory.signals.contiguity import Contiguity
from speckit_memory.signals.encoding_intent import EncodingIntent
from speckit_memory.signals.field_match import FieldMatch
from speckit_memory.signals.folder_score import FolderScore
from speckit_memory.signals.hierarchy import Hierarchy
from speckit_memory.signals.importance import Importance
from speckit_memory.signals.interference import Interference
from speckit_memory.signals.novelty import Novelty
from speckit_memory.signals.recency import Recency
from speckit_memory.signals.session import Session
from speckit_memory.signals.temporal import Temporal
from speckit_memory.signals.validation import Validation
from speckit_memory.stages.annotate.anchor_filter import AnchorFilter
from speckit_memory.stages.annotate.attribution import Attribution
from speckit_memory.stages.annotate.constitutional_guarantee import ConstitutionalGuarantee
from speckit_memory.stages.annotate.duplicates import Duplicates
from speckit_memory.stages.annotate.encoder_notice import EncoderNotice
from speckit_memory.stages.annotate.evidence_gap import EvidenceGap
from speckit_memory.stages.annotate.fitting import Fitting
from speckit_memory.stages.annotate.session_dedup import SessionDedup
from speckit_memory.stages.annotate.state_filter import StateFilter
from speckit_memory.stages.annotate.superseded import Superseded
from speckit_memory.stages.annotate.token_budget import TokenBudget
from speckit_memory.stages.candidates.acronyms import Acronyms
from speckit_memory.stages.candidates.complexity import Complexity
from speckit_memory.stages.candidates.coverage import Coverage
from speckit_memory.stages.candidates.embedding_expansion import EmbeddingExpansion
from speckit_memory.stages.candidates.expansion import Expansion
from speckit_memory.stages.candidates.fallback import Fallback
from speckit_memory.stages.candidates.folder_prefilter import FolderPrefilter
from speckit_memory.stages.candidates.intent import Intent
from speckit_memory.stages.candidates.pressure import Pressure
from speckit_memory.stages.candidates.quick_look import QuickLook
from speckit_memory.stages.candidates.router import Router
from speckit_memory.stages.candidates.signal_vocabulary import SignalVocabulary
from speckit_memory.stages.candidates.spelling import Spelling
from speckit_memory.stages.candidates.times import Times
from speckit_memory.stages.fusion.rrf import Rrf
from speckit_memory.stages.fusion.rsf import Rsf
from speckit_memory.stages.fusion.single import Single
from speckit_memory.stages.fusion.z_score import ZScore
from speckit_memory.stages.rerank.channel_floor import ChannelFloor
from speckit_memory.stages.rerank.collapse import Collapse
from speckit_memory.stages.rerank.confidence_cut import ConfidenceCut
from speckit_memory.stages.rerank.context_diversity import ContextDiversity
from speckit_memory.stages.rerank.cross_encoder import CrossEncoder
from speckit_memory.stages.rerank.encoder import Encoder
from speckit_memory.stages.rerank.maxsim import Maxsim
from speckit_memory.stages.rerank.min_max import MinMax
from speckit_memory.stages.rerank.mmr import Mmr
from speckit_memory.stages.rerank.pin import Pin
from speckit_memory.stages.rerank.regularise import Regularise
from speckit_memory.stages.rerank.relevance_floor import RelevanceFloor
from speckit_memory.stages.rerank.standardise import Standardise

if TYPE_CHECKING:
    from speckit_memory.pipeline.isolation.host import Host

UNDERSTANDERS: tuple[Callable[[Any], Understander], ...] = (
    Acronyms,
    Complexity,
    Coverage,
    EmbeddingExpansion,
    Expansion,
    FolderPrefilter,
    Intent,
    Pressure,
    QuickLook,
    Router,
    SignalVocabulary,
    Spelling,
    Times,
)
CHANNELS: tuple[Callable[[Any], Channel], ...] = (
    Bm25,
    Community,
    Constitutional,
    Degree,
    Fts5,
    Graph,
    Handover,
    Identifier,
    Phrase,
    Surface,
    Dated,
    Trigger,
    LearnedTrigger,
    Vector,
)
RECOVERERS: tuple[Callable[[Any], Recoverer], ...] = (Fallback,)
FUSERS: tuple[Callable[[Any], Fuser], ...] = (
    Rrf,
    Rsf,
    Single,
    ZScore,
)
SIGNALS: tuple[Callable[[Any], Signal], ...] = (
    Causal,
    Centrality,
    Coactivation,
    Composite,
    Confidence,
    Contiguity,
    EncodingIntent,
    FieldMatch,
    FolderScore,
    Hierarchy,
    Importance,
    Interference,
    Novelty,
    Recency,
    Session,
    Temporal,
    Validation,
)
RERANKERS: tuple[Callable[[Any], Reranker], ...] = (
    ChannelFloor,
    Collapse,
    ConfidenceCut,
    ContextDiversity,
    CrossEncoder,
    Encoder,
    Maxsim,
    MinMax,
    Mmr,
    Pin,
    Regularise,
    RelevanceFloor,
    Standardise,
)
ANNOTATORS: tuple[Callable[[Any], Annotator], ...] = (
    AnchorFilter,
    Attribution,
    ConstitutionalGuarantee,
    Duplicates,
    EncoderNotice,
    EvidenceGap,
    Fitting,
    SessionDedup,
    StateFilter,
    Superseded,
    TokenBudget,
)

COMPONENTS: tuple[tuple[Role, Callable[[Any], object]], ...] = (
    *((Role.UNDERSTANDER, component) for component in UNDERSTANDERS),
    *((Role.CHANNEL, component) for component in CHANNELS),
    *((Role.RECOVERER, component) for component in RECOVERERS),
    *((Role.FUSER, component) for component in FUSERS),
    *((Role.SIGNAL, component) for component in SIGNALS),
    *((Role.RERANKER, component) for component in RERANKERS),
    *((Role.ANNOTATOR, component) for component in ANNOTATORS),
)
"""Every component of the product. The tables above are typed by role."""


def registry(environ: Mapping[str, str] | None = None, root: Path | None = None) -> Registry:
    """Every component of the product and of installed extensions, loaded as environment and workspace configure.

    Frozen, and the same object for the same settings. Raises SpeckitError for invalid settings.
    """
    return registry_of(extensions_in_force(environ, root))


_hosts: list[Host] = []


@cache
def registry_of(extensions: ExtensionSettings) -> Registry:
    """The same registry for extension settings that are already known."""
    registry = Registry()
    for role, component in COMPONENTS:
        registry.admit(role, component, proven=True)
    if extensions.mode == "trusted":
        registry.add_entry_points()
    elif extensions.mode == "none":
        registry.leave_out()
    elif installed_extensions():
        # imported here: without extensions start-up stays fast
        from speckit_memory.pipeline.isolation.extensions import IsolatedExtensions
        from speckit_memory.pipeline.isolation.host import Host

        host = Host(extensions.memory_mb)
        _hosts.append(host)
        registry.add_elsewhere(IsolatedExtensions(host))
    return registry.freeze()


def end_extensions() -> None:
    """Ends the processes of isolated extensions; for programs that exit without the interpreter's shutdown."""
    for host in _hosts:
        host.end()
