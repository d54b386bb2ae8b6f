"""Kinds of documents that an index run leaves as they are: neither read, nor taken out of the store (feature I8).

A memory follows its file into such a kind or out of it all the same: what was learned of it would be lost otherwise.
"""

from __future__ import annotations

from collections.abc import Collection

from speckit_memory.memory.parsing.classify import SPEC_DOCUMENTS, document_type
from speckit_memory.memory.scanning.scanner import Decision, Scan


def kinds_left_alone(*, constitutional: bool, spec_docs: bool) -> frozenset[str]:
    """The kinds, where one or the other is not to be included."""
    rules = () if constitutional else ("constitutional",)
    return frozenset({*rules, *(() if spec_docs else SPEC_DOCUMENTS.values())})


def leave_alone(decision: Decision, found: Scan, kinds: Collection[str]) -> Decision:
    """What was decided of all other kinds; the files of these that were found count as ignored."""
    if not kinds:
        return decision
    for key in found.files:
        if (kind := document_type(key)) in kinds:
            found.ignored[key] = f"left as it is: {kind.replace('_', ' ')} documents are not wanted"
    return Decision(
        tuple(file for file in decision.read if document_type(file.key) not in kinds),
        *(tuple(key for key in keys if document_type(key) not in kinds) for keys in (decision.skip, decision.gone)),
    )
