"""Excludes document types from an index run: their files are not read, and their memories stay (feature I8).

A memory still follows a file moved into or out of such a type, so that its learned state is kept.
"""

from __future__ import annotations

from collections.abc import Collection

from speckit_memory.memory.parsing.classify import SPEC_DOCUMENTS, document_type
from speckit_memory.memory.scanning.scanner import Decision, Scan


def kinds_left_alone(*, constitutional: bool, spec_docs: bool) -> frozenset[str]:
    """Return the document types to exclude, given which groups are included."""
    rules = () if constitutional else ("constitutional",)
    return frozenset({*rules, *(() if spec_docs else SPEC_DOCUMENTS.values())})


def leave_alone(decision: Decision, found: Scan, kinds: Collection[str]) -> Decision:
    """Return the decision without documents of these types; their files are reported as ignored."""
    if not kinds:
        return decision
    for key in found.files:
        if (kind := document_type(key)) in kinds:
            found.ignored[key] = f"skipped: {kind.replace('_', ' ')} documents are excluded"
    return Decision(
        tuple(file for file in decision.read if document_type(file.key) not in kinds),
        *(tuple(key for key in keys if document_type(key) not in kinds) for keys in (decision.skip, decision.gone)),
    )
