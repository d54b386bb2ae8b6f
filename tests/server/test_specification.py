"""Tools take what the specification gives them; what they do not take stands in a decision record, with its reason."""

from __future__ import annotations

from pathlib import Path

from speckit_memory.config.workspace.settings import workspace_root
from tests.server.test_tool_parameters import published

RECORD = "docs/decisions/0076-what-one-search-may-want.md"
SPECIFIED = {
    "memory_context": "input mode intent specFolder limit sessionId enableDedup includeContent tokenUsage anchors",
    "memory_search": "query concepts specFolder limit sessionId enableDedup tier contextType useDecay "
    "includeContiguity includeConstitutional enableSessionBoost enableCausalBoost includeContent anchors "
    "min_quality_score bypassCache rerank applyLengthPenalty applyStateLimits minState intent autoDetectIntent",
    "memory_match_triggers": "prompt limit session_id turnNumber include_cognitive",
    "memory_save": "filePath force dryRun skipPreflight asyncEmbedding",
    "memory_list": "limit offset specFolder sortBy includeChunks",
    "memory_stats": "folderRanking excludePatterns includeScores includeArchived limit",
    "memory_health": "reportMode limit specFolder",
    "memory_update": "id title triggerPhrases importanceWeight importanceTier allowPartialUpdate",
    "memory_delete": "id specFolder confirm",
    "memory_validate": "id wasUseful",
    "memory_bulk_delete": "tier confirm specFolder olderThanDays skipCheckpoint",
    "checkpoint_create": "name specFolder metadata",
    "checkpoint_list": "specFolder limit",
    "checkpoint_restore": "name clearExisting",
    "checkpoint_delete": "name",
    "task_preflight": "specFolder taskId knowledgeScore uncertaintyScore contextScore knowledgeGaps sessionId",
    "task_postflight": "specFolder taskId knowledgeScore uncertaintyScore contextScore gapsClosed newGapsDiscovered",
    "memory_drift_why": "memoryId maxDepth direction relations includeMemoryDetails",
    "memory_causal_link": "sourceId targetId relation strength evidence",
    "memory_causal_stats": "",
    "memory_causal_unlink": "edgeId",
    "memory_index_scan": "specFolder force includeConstitutional includeSpecDocs incremental",
    "memory_get_learning_history": "specFolder sessionId limit onlyComplete includeSummary",
}
"""The parameters of each tool in the specification (features T1 to T23)."""
NOT_TAKEN = {"memory_search": {"min_quality_score"}}


def test_tools_take_every_parameter_of_the_specification_or_a_record_says_why_not() -> None:
    taken = published()
    assert set(taken) == set(SPECIFIED)
    missing = {tool: set(names.split()) - set(taken[tool]) for tool, names in SPECIFIED.items()}
    assert {tool: names for tool, names in missing.items() if names} == NOT_TAKEN
    record = (workspace_root(Path(__file__).parent) / RECORD).read_text(encoding="utf-8")
    assert [name for names in NOT_TAKEN.values() for name in names if f"`{name}`" not in record] == []
