"""Kinds of documents that an index run leaves as they are: neither read, nor taken out of the store (feature I8)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar

from speckit_memory.memory.indexing.classify import SPEC_DOCUMENTS, document_type
from speckit_memory.memory.indexing.scanner import Scan

Known = TypeVar("Known")


def kinds_left_alone(*, constitutional: bool, spec_docs: bool) -> frozenset[str]:
    """The kinds, where one or the other is not to be included."""
    rules = () if constitutional else ("constitutional",)
    return frozenset({*rules, *(() if spec_docs else SPEC_DOCUMENTS.values())})


def leave_alone(found: Scan, kinds: Collection[str]) -> None:
    """Takes files of these kinds out of what was found."""
    for key in [key for key in found.files if document_type(key) in kinds]:
        del found.files[key]
        found.ignored[key] = f"left as it is: {document_type(key).replace('_', ' ')} documents are not wanted"


def others(known: Mapping[str, Known], kinds: Collection[str]) -> Mapping[str, Known]:
    """What is stored of all other kinds, by key."""
    return {key: file for key, file in known.items() if document_type(key) not in kinds} if kinds else known
