"""Reads a resource as text: a memory, the pipeline in use, or the last shadow report."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from mcp_types import ReadResourceResult, TextResourceContents

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.errors.echo import abridge
from speckit_memory.errors.names import displayable_name, sendable
from speckit_memory.server.replies.answering import refuse
from speckit_memory.server.resources.catalogue import JSON, MARKDOWN, YAML
from speckit_memory.server.resources.uris import MEMORY, PIPELINE, SHADOW_REPORT, TEMPLATE, memory_uri, names_in
from speckit_memory.server.workspace.workspace import Workspace

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.memory.store.records import MemoryRecord

LONGEST = 2_000_000
"""Longest memory (characters) that is sent as a whole."""


def read(workspace: Workspace, uri: str) -> ReadResourceResult:
    """Reads the resource of a URI. Raises SpeckitError, and MCPError for an unknown URI, with the nearest one."""
    kinds: dict[str, tuple[str, Callable[[Workspace], str]]] = {
        PIPELINE: (YAML, _pipeline),
        SHADOW_REPORT: (JSON, _shadow_report),
    }
    if uri in kinds:
        kind, text = kinds[uri]
        return _answer(uri, kind, text(workspace))
    if not uri.startswith(MEMORY) or uri == MEMORY:
        told = abridge(uri)
        refuse(f"there is no resource '{told}'; {nearest(told, [*kinds, TEMPLATE])}", uri=told)
    return _memory(workspace.memory(), uri)


def record_of(memory: Memory, uri: str) -> MemoryRecord:
    """The memory of a URI, resolved as in tools. Raises E080 with the nearest keys."""
    from speckit_memory.server.console.arguments.memory_names import of_known

    *others, last = names_in(uri)
    for name in others:
        try:
            return of_known(memory, name, memory.get)
        except SpeckitError as error:
            if error.code != "E080":
                raise
    return of_known(memory, last, memory.get)


def _memory(memory: Memory, uri: str) -> ReadResourceResult:
    record = record_of(memory, uri)
    if record.characters > LONGEST:
        raise SpeckitError(
            "E032",
            f"{record.key} has {record.characters:,} characters; at most {LONGEST:,} are sent as a resource",
            actions=(f"read it in parts: memory_search with key={record.id} and fromLine",),
        )
    reading = memory.documents.read(record.id, section="", first_line=1)
    memory.feedback.opened(reading)
    return _answer(uri, MARKDOWN, f"{reading.text}\n", key=record.key, uri=memory_uri(record.key))


def _answer(asked: str, kind: str, text: str, **about: str) -> ReadResourceResult:
    """Builds the answer; `about` goes to `_meta`, so that the text is exactly the stored one."""
    meta = {f"speckit-memory/{name}": displayable_name(value) for name, value in about.items()}
    return ReadResourceResult(
        contents=[TextResourceContents(uri=asked, mime_type=kind, text=displayable_name(text), _meta=meta or None)]
    )


def _pipeline(workspace: Workspace) -> str:
    from speckit_memory.engine.pipelines.pipelines import show

    config = workspace.config
    text = show(config.pipeline, config.environ_of_root, config.overrides, effective=True, origin=True)
    return f"# {config.pipeline_told}\n{text}"


def _shadow_report(workspace: Workspace) -> str:
    from speckit_memory.server.shadows.empty_report import why_nothing
    from speckit_memory.server.shadows.report import read as read_report

    config = workspace.config
    workspace.memory()  # raises the error with next steps if there is no store
    report = read_report(
        config.db, since=None, experiment="", now=time.time(), nothing=lambda: why_nothing(config, None)
    )
    document = {"sentence": report.sentence(), **report.as_report().data}
    return json.dumps(sendable(document), ensure_ascii=False, indent=2)
