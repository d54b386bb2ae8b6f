"""Suggests the tool that a client most likely meant by an unknown name."""

from __future__ import annotations

import re
from collections.abc import Collection

from speckit_memory.errors import nearest
from speckit_memory.errors.problems import LONGEST_NAME

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_NOUNS = frozenset(
    {
        *("memory", "memories", "note", "notes", "document", "documents", "doc", "file", "entry", "item", "text"),
        *("content", "by", "id", "key", "speckit"),
    }
)
_MEANT = {
    "get read fetch show view open load cat": ("memory_search", " with 'key'"),
    "search query find recall retrieve lookup ask grep": ("memory_search", ""),
    "add create write store remember put insert new capture record log": ("memory_save", " with 'content'"),
    "replace overwrite append rewrite": ("memory_save", " with 'edit'"),
    "set modify change rename edit patch tag": ("memory_update", ""),
    "remove forget erase drop rm": ("memory_delete", ""),
    "undelete restore undo recover": ("memory_delete", " with 'undo'"),
    "index scan reindex ingest sync refresh reload import": ("memory_index_scan", ""),
    "feedback rate judge vote score": ("memory_validate", ""),
    "ls all browse": ("memory_list", ""),
    "resume handover session start brief": ("memory_context", ""),
    "link relate connect supersede": ("memory_causal_link", ""),
    "unlink disconnect": ("memory_causal_unlink", ""),
    "why lineage trace explain graph history": ("memory_drift_why", ""),
    "status ping doctor check diagnose": ("memory_health", ""),
    "info count summary statistics": ("memory_stats", ""),
    "snapshot backup": ("checkpoint_create", ""),
}
"""The tool for each group of action words, and the parameter for the action if the tool has several uses."""
_BY_ACTION = {action: meant for actions, meant in _MEANT.items() for action in actions.split()}


def meant_tool(name: str, offered: Collection[str]) -> str:
    """A phrase that suggests the tool of `offered` meant by the name, or lists them all."""
    bare = name[:LONGEST_NAME].rpartition("__")[2]  # clients prefix the server's name
    words = {word.lower() for word in _WORD.findall(bare)} - _NOUNS
    # only an unambiguous action is mapped; otherwise fall back to the nearest spelling
    if len(words) == 1 and bare not in offered:
        tool, parameter = _BY_ACTION.get(words.pop(), ("", ""))
        if tool in offered:
            return f"did you mean '{tool}'{parameter}?"
    return nearest(bare, offered)
