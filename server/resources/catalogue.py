"""The list of what can be read: what stands there without a look at the store, and the memories behind it, by page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mcp_types import Annotations, ListResourcesResult, ListResourceTemplatesResult, Resource, ResourceTemplate

from speckit_memory.server.console.markdown import about, one_line
from speckit_memory.server.replies.answering import refuse
from speckit_memory.server.resources.uris import PIPELINE, SHADOW_REPORT, TEMPLATE, memory_uri
from speckit_memory.server.workspace.workspace import Workspace

if TYPE_CHECKING:
    from speckit_memory.memory.store.records import MemoryRecord

PAGE = 100
"""Memories of a page."""
MOST_LISTED = 1_000
"""So many memories are listed, those that changed last; the template and completion reach all of them."""
MARKDOWN = "text/markdown"
YAML = "application/yaml"
JSON = "application/json"

STATIC = (
    Resource(
        uri=PIPELINE,
        name="pipeline",
        title="The pipeline in use",
        description="The retrieval pipeline of this workspace with every value filled in, and where each comes from.",
        mime_type=YAML,
    ),
    Resource(
        uri=SHADOW_REPORT,
        name="shadow-report",
        title="The last shadow report",
        description="What pipelines that ran beside the served one have shown: verdicts, costs and what to do next.",
        mime_type=JSON,
    ),
)
TEMPLATES = (
    ResourceTemplate(
        uri_template=TEMPLATE,
        name="memory",
        title="A memory by its key",
        description="The whole Markdown of a memory as it is stored. Keys are completed.",
        mime_type=MARKDOWN,
    ),
)


def templates() -> ListResourceTemplatesResult:
    """All templates, on one page."""
    return ListResourceTemplatesResult(resource_templates=list(TEMPLATES))


def first_page(workspace: Workspace) -> ListResourcesResult:
    """What is always there. Where there is a store, pages of memories follow; it is not opened for that."""
    return ListResourcesResult(resources=list(STATIC), next_cursor="0" if workspace.has_store else None)


def page_of_memories(workspace: Workspace, cursor: str) -> ListResourcesResult:
    """The page that a cursor of this list names. Refuses any other cursor."""
    offset = int(cursor) if cursor.isascii() and cursor.isdigit() and len(cursor) < len(str(MOST_LISTED)) else None
    if offset is None or offset % PAGE:
        refuse("the cursor is none of this list; ask without one")
    records, total = workspace.memory().list(sort="updated_at", limit=PAGE, offset=offset)
    behind = offset + PAGE
    return ListResourcesResult(
        resources=[_listed(record) for record in records],
        next_cursor=str(behind) if behind < min(total, MOST_LISTED) else None,
    )


def _listed(record: MemoryRecord) -> Resource:
    changed = record.updated_at
    return Resource(
        uri=memory_uri(record.key),
        name=record.key,
        title=one_line(record.title),
        description=about(record.tier if record.tier != "normal" else "", record.context_type) or None,
        mime_type=MARKDOWN,
        annotations=None if changed is None else Annotations(last_modified=_moment(changed)),
    )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
