"""Lists resources: static ones first, without opening the store, then memories page by page."""

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
"""Memories per page."""
MOST_LISTED = 1_000
"""Memories listed, those changed last; the template and completion reach all of them."""
MARKDOWN = "text/markdown"
YAML = "application/yaml"
JSON = "application/json"

STATIC = (
    Resource(
        uri=PIPELINE,
        name="pipeline",
        title="The pipeline in use",
        description="The retrieval pipeline of this workspace with every value filled in and its origin.",
        mime_type=YAML,
    ),
    Resource(
        uri=SHADOW_REPORT,
        name="shadow-report",
        title="The last shadow report",
        description="Results of the shadow pipelines: verdicts, costs and next steps.",
        mime_type=JSON,
    ),
)
TEMPLATES = (
    ResourceTemplate(
        uri_template=TEMPLATE,
        name="memory",
        title="A memory by its key",
        description="The whole stored Markdown of a memory. Keys are completed.",
        mime_type=MARKDOWN,
    ),
)


def templates() -> ListResourceTemplatesResult:
    """All templates on one page."""
    return ListResourceTemplatesResult(resource_templates=list(TEMPLATES))


def first_page(workspace: Workspace) -> ListResourcesResult:
    """The static resources; pages of memories follow if there is a store, which is not opened for this."""
    return ListResourcesResult(resources=list(STATIC), next_cursor="0" if workspace.has_store else None)


def page_of_memories(workspace: Workspace, cursor: str) -> ListResourcesResult:
    """The page at a cursor. Raises MCPError for a cursor that is not from this list."""
    # the cursor is the offset of the page; the length is checked before int() to bound the work
    offset = int(cursor) if cursor.isascii() and cursor.isdigit() and len(cursor) < len(str(MOST_LISTED)) else None
    if offset is None or offset % PAGE:
        refuse("the cursor is not from this list; start again without one")
    records, total = workspace.memory().list(sort="updated_at", limit=PAGE, offset=offset)
    behind = offset + PAGE
    return ListResourcesResult(
        resources=[_as_resource(record) for record in records],
        next_cursor=str(behind) if behind < min(total, MOST_LISTED) else None,
    )


def _as_resource(record: MemoryRecord) -> Resource:
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
