"""speckit-memory: a project's memory for coding agents, searched by a declared, measurable retrieval pipeline.

    from speckit_memory import Memory

    with Memory.open("memory.db") as memory:
        memory.index("docs")
        memory.search("why rank fusion?", limit=5)

Names are imported on first use: importing this package loads neither numpy nor a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.engine.answers.result_parts import Coverage as Coverage
    from speckit_memory.engine.answers.result_parts import NamedMemory as NamedMemory
    from speckit_memory.engine.answers.result_parts import PipelineIdentity as PipelineIdentity
    from speckit_memory.engine.answers.result_parts import SearchNotes as SearchNotes
    from speckit_memory.engine.answers.result_parts import SearchPlan as SearchPlan
    from speckit_memory.engine.answers.result_parts import StepTiming as StepTiming
    from speckit_memory.engine.answers.result_parts import Timings as Timings
    from speckit_memory.engine.answers.results import ChannelEvidence as ChannelEvidence
    from speckit_memory.engine.answers.results import Explanation as Explanation
    from speckit_memory.engine.answers.results import ResultRow as ResultRow
    from speckit_memory.engine.answers.results import SearchResult as SearchResult
    from speckit_memory.engine.answers.results import ShadowAnswer as ShadowAnswer
    from speckit_memory.engine.api.checkpoints import RestoreResult as RestoreResult
    from speckit_memory.engine.api.deletion import DeletionResult as DeletionResult
    from speckit_memory.engine.api.deletion import UndeletionResult as UndeletionResult
    from speckit_memory.engine.api.documents import UpdateResult as UpdateResult
    from speckit_memory.engine.api.exchange import ImportedMemory as ImportedMemory
    from speckit_memory.engine.api.exchange import ImportResult as ImportResult
    from speckit_memory.engine.api.inventory import StoreDelta as StoreDelta
    from speckit_memory.engine.api.lifecycle import RepairReport as RepairReport
    from speckit_memory.engine.api.memory import Memory as Memory
    from speckit_memory.engine.api.triggers import LearnedPhrases as LearnedPhrases
    from speckit_memory.engine.diagnostics.health import HealthCheck as HealthCheck
    from speckit_memory.engine.diagnostics.health import HealthReport as HealthReport
    from speckit_memory.engine.documents.alias_report import AliasGroup as AliasGroup
    from speckit_memory.engine.documents.alias_report import AliasReport as AliasReport
    from speckit_memory.engine.documents.folder_ranking import FolderRanking as FolderRanking
    from speckit_memory.engine.documents.folder_ranking import RankedFolder as RankedFolder
    from speckit_memory.engine.explain.changes import QueryEdit as QueryEdit
    from speckit_memory.engine.explain.smallest_change import SmallestChange as SmallestChange
    from speckit_memory.engine.graph.lineage import Lineage as Lineage
    from speckit_memory.engine.graph.linking import LinkStats as LinkStats
    from speckit_memory.engine.graph.linking import NamedChange as NamedChange
    from speckit_memory.engine.graph.linking import NamedEdge as NamedEdge
    from speckit_memory.engine.graph.linking import UndoneChanges as UndoneChanges
    from speckit_memory.engine.graph.report import GraphReport as GraphReport
    from speckit_memory.engine.graph.report import LinkedNames as LinkedNames
    from speckit_memory.engine.runtime.model_use import StoreModels as StoreModels
    from speckit_memory.engine.search.plans import PlannedChannel as PlannedChannel
    from speckit_memory.engine.search.plans import PlannedVariant as PlannedVariant
    from speckit_memory.engine.search.plans import PlanReport as PlanReport
    from speckit_memory.engine.search.plans import SearchCost as SearchCost
    from speckit_memory.engine.search.reading import TextExcerpt as TextExcerpt
    from speckit_memory.engine.search.triggers import RelatedMemory as RelatedMemory
    from speckit_memory.engine.search.triggers import TriggerMatch as TriggerMatch
    from speckit_memory.engine.search.triggers import TriggerMatches as TriggerMatches
    from speckit_memory.engine.serving.cache_key import StateToken as StateToken
    from speckit_memory.engine.serving.reloading import FilesFollowed as FilesFollowed
    from speckit_memory.engine.session.reopening import Replacement as Replacement
    from speckit_memory.engine.shadowing.variant import ShadowState as ShadowState
    from speckit_memory.engine.upkeep.maintenance import JobOutcome as JobOutcome
    from speckit_memory.engine.upkeep.maintenance import MaintenanceReport as MaintenanceReport
    from speckit_memory.engine.upkeep.review_queue import ReviewQueue as ReviewQueue
    from speckit_memory.errors import ConfigurationError as ConfigurationError
    from speckit_memory.errors import DocumentError as DocumentError
    from speckit_memory.errors import InternalError as InternalError
    from speckit_memory.errors import InvalidRequestError as InvalidRequestError
    from speckit_memory.errors import ModelUnavailableError as ModelUnavailableError
    from speckit_memory.errors import NotFoundError as NotFoundError
    from speckit_memory.errors import Problem as Problem
    from speckit_memory.errors import SearchFailedError as SearchFailedError
    from speckit_memory.errors import SpeckitError as SpeckitError
    from speckit_memory.errors import StoreBusyError as StoreBusyError
    from speckit_memory.errors import StoreClosedError as StoreClosedError
    from speckit_memory.errors import StoreError as StoreError
    from speckit_memory.errors import Where as Where
    from speckit_memory.memory.exchange.exporting import ExportReport as ExportReport
    from speckit_memory.memory.indexing import IndexProgress as IndexProgress
    from speckit_memory.memory.indexing import IndexReport as IndexReport
    from speckit_memory.memory.indexing import SavedLink as SavedLink
    from speckit_memory.memory.indexing import SaveResult as SaveResult
    from speckit_memory.memory.indexing import Source as Source
    from speckit_memory.memory.indexing.restored_files import Disagreements as Disagreements
    from speckit_memory.memory.indexing.spaces import EmbeddingRun as EmbeddingRun
    from speckit_memory.memory.indexing.spaces import ModelChange as ModelChange
    from speckit_memory.memory.intake.contradictions import Contradiction as Contradiction
    from speckit_memory.memory.intake.intake import Intake as Intake
    from speckit_memory.memory.intake.prediction_error import Verdict as Verdict
    from speckit_memory.memory.intake.quality import DocumentQuality as DocumentQuality
    from speckit_memory.memory.intake.secrets import Secret as Secret
    from speckit_memory.memory.intake.self_quotes import SelfQuote as SelfQuote
    from speckit_memory.memory.intake.suspicions import Suspicion as Suspicion
    from speckit_memory.memory.lifecycle.epistemic import LearningSummary as LearningSummary
    from speckit_memory.memory.lifecycle.epistemic import TaskLearning as TaskLearning
    from speckit_memory.memory.lifecycle.epistemic import TaskScores as TaskScores
    from speckit_memory.memory.lifecycle.folder_worth import FolderWorth as FolderWorth
    from speckit_memory.memory.lifecycle.staleness import Stale as Stale
    from speckit_memory.memory.lifecycle.tasks import Task as Task
    from speckit_memory.memory.lifecycle.tasks import TaskHistory as TaskHistory
    from speckit_memory.memory.lifecycle.validations import UndoneJudgements as UndoneJudgements
    from speckit_memory.memory.lifecycle.validations import ValidationResult as ValidationResult
    from speckit_memory.memory.parsing.classify import InferredType as InferredType
    from speckit_memory.memory.scanning.moves import FileMove as FileMove
    from speckit_memory.memory.store.checkpoints.creation import CreatedCheckpoint as CreatedCheckpoint
    from speckit_memory.memory.store.checkpoints.deletions import Deletion as Deletion
    from speckit_memory.memory.store.checkpoints.folder import Checkpoint as Checkpoint
    from speckit_memory.memory.store.checkpoints.restoring import RestoreReport as RestoreReport
    from speckit_memory.memory.store.reading.density import Density as Density
    from speckit_memory.memory.store.reading.lineage import LineageStep as LineageStep
    from speckit_memory.memory.store.reading.reader import StoreStatistics as StoreStatistics
    from speckit_memory.memory.store.records import MemoryRecord as MemoryRecord
    from speckit_memory.memory.store.records import Tier as Tier
    from speckit_memory.memory.store.tables.memories.archivals import ArchivedMemory as ArchivedMemory
    from speckit_memory.memory.store.tables.memories.judgements import Judgement as Judgement
    from speckit_memory.memory.store.tables.memories.judgements import ReviewState as ReviewState
    from speckit_memory.memory.store.tables.sessions.selections import LearnedPhrase as LearnedPhrase
    from speckit_memory.memory.store.tables.sessions.selections import Selection as Selection
    from speckit_memory.memory.store.tables.vectors.embedding_models import ModelFingerprint as ModelFingerprint
    from speckit_memory.pipeline.model.trace import Degradation as Degradation
    from speckit_memory.pipeline.ports import Passage as Passage
    from speckit_memory.pipeline.running.explain import StepExplanation as StepExplanation

_MODULES = {
    "engine.documents.alias_report": ("AliasGroup", "AliasReport"),
    "engine.explain.changes": ("QueryEdit",),
    "engine.api.checkpoints": ("RestoreResult", "RepairReport"),
    "engine.api.deletion": ("DeletionResult", "UndeletionResult"),
    "engine.api.documents": ("UpdateResult",),
    "engine.api.exchange": ("ImportResult", "ImportedMemory"),
    "engine.documents.folder_ranking": ("FolderRanking", "RankedFolder"),
    "engine.session.reopening": ("Replacement",),
    "engine.graph.report": ("GraphReport", "LinkedNames"),
    "engine.diagnostics.health": ("HealthCheck", "HealthReport"),
    "engine.api.inventory": ("StoreDelta",),
    "engine.api.learning": ("LearnedPhrases",),
    "engine.graph.lineage": ("Lineage",),
    "engine.graph.linking": ("LinkStats", "NamedChange", "NamedEdge", "UndoneChanges"),
    "engine.upkeep.maintenance": ("JobOutcome", "MaintenanceReport"),
    "engine.api.memory": ("Memory",),
    "engine.runtime.model_use": ("StoreModels",),
    "engine.search.plans": ("PlanReport", "PlannedChannel", "PlannedVariant"),
    "engine.search.reading": ("TextExcerpt",),
    "engine.serving.reloading": ("FilesFollowed",),
    "engine.answers.result_parts": (
        "Coverage",
        "NamedMemory",
        "PipelineIdentity",
        "SearchNotes",
        "SearchPlan",
        "StepTiming",
        "Timings",
    ),
    "engine.answers.results": ("ChannelEvidence", "Explanation", "ResultRow", "SearchResult", "ShadowAnswer"),
    "engine.upkeep.review_queue": ("ReviewQueue",),
    "engine.shadowing.variant": ("ShadowState",),
    "engine.explain.smallest_change": ("SmallestChange",),
    "engine.serving.cache_key": ("StateToken",),
    "engine.search.triggers": ("RelatedMemory", "TriggerMatch", "TriggerMatches"),
    "engine.search.cost": ("SearchCost",),
    "errors": (
        "ConfigurationError",
        "DocumentError",
        "InternalError",
        "InvalidRequestError",
        "ModelUnavailableError",
        "NotFoundError",
        "Problem",
        "SearchFailedError",
        "SpeckitError",
        "StoreBusyError",
        "StoreClosedError",
        "StoreError",
        "Where",
    ),
    "memory.exchange.exporting": ("ExportReport",),
    "memory.indexing": ("IndexReport", "IndexProgress", "SaveResult", "SavedLink", "Source"),
    "memory.parsing.classify": ("InferredType",),
    "memory.intake.contradictions": ("Contradiction",),
    "memory.intake.intake": ("Intake",),
    "memory.scanning.moves": ("FileMove",),
    "memory.intake.prediction_error": ("Verdict",),
    "memory.intake.quality": ("DocumentQuality",),
    "memory.intake.self_quotes": ("SelfQuote",),
    "memory.indexing.restored_files": ("Disagreements",),
    "memory.intake.secrets": ("Secret",),
    "memory.indexing.spaces": ("EmbeddingRun", "ModelChange"),
    "memory.intake.suspicions": ("Suspicion",),
    "memory.lifecycle.epistemic": ("LearningSummary", "TaskLearning", "TaskScores"),
    "memory.lifecycle.folder_worth": ("FolderWorth",),
    "memory.lifecycle.staleness": ("Stale",),
    "memory.lifecycle.tasks": ("Task", "TaskHistory"),
    "memory.lifecycle.validations": ("UndoneJudgements", "ValidationResult"),
    "memory.store.checkpoints.deletions": ("Deletion",),
    "memory.store.checkpoints.folder": ("Checkpoint",),
    "memory.store.checkpoints.creation": ("CreatedCheckpoint",),
    "memory.store.checkpoints.restoring": ("RestoreReport",),
    "memory.store.reading.density": ("Density",),
    "memory.store.reading.lineage": ("LineageStep",),
    "memory.store.reading.reader": ("StoreStatistics",),
    "memory.store.records": ("MemoryRecord", "Tier"),
    "memory.store.tables.memories.archivals": ("ArchivedMemory",),
    "memory.store.tables.vectors.embedding_models": ("ModelFingerprint",),
    "memory.store.tables.memories.judgements": ("Judgement", "ReviewState"),
    "memory.store.tables.sessions.selections": ("LearnedPhrase", "Selection"),
    "pipeline.running.explain": ("StepExplanation",),
    "pipeline.ports": ("Passage",),
    "pipeline.model.trace": ("Degradation",),
}
"""The module of each public name."""
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOMES)  # noqa: PLE0605 -- one list of names is enough


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib import import_module

    # Cached in the module, so that `__getattr__` runs once per name.
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
