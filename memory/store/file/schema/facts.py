"""The attributes of a memory: one `Fact` per column of the table `memories`."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Fact(NamedTuple):
    """A column of `memories`. Times are seconds since the epoch, stability is in days.

    An `optional` column may be NULL; a `living` one is changed by use and judgement, not by the document.
    """

    name: str
    kind: Literal["integer", "real", "text"]
    optional: bool = False
    living: bool = False


KEY = Fact("id", "integer")
FACTS = (
    Fact("key", "text"),
    Fact("title", "text"),
    Fact("folder", "text"),
    Fact("tier", "text"),
    Fact("context_type", "text"),
    Fact("document_type", "text"),
    Fact("memory_type", "text"),
    Fact("content_hash", "text"),
    Fact("created_at", "real"),
    Fact("updated_at", "real"),
    Fact("last_accessed", "real", optional=True, living=True),
    Fact("last_review", "real", optional=True, living=True),
    Fact("access_count", "integer", living=True),
    Fact("stability", "real", living=True),
    Fact("difficulty", "real", living=True),
    Fact("confidence", "real", living=True),
    Fact("validation_count", "integer", living=True),
    Fact("importance_weight", "real", living=True),
    Fact("interference", "real", living=True),
    Fact("characters", "integer"),
    Fact("spec_level", "integer", optional=True),
    Fact("expires_at", "real", optional=True, living=True),
)
"""Columns that searches and lists read, in this order."""
KEPT_FACTS = (
    Fact("chunk_count", "integer"),
    Fact("mtime_ns", "integer", optional=True),
    Fact("ctime_ns", "integer", optional=True),
    Fact("review_count", "integer", living=True),
    Fact("created_by", "text"),
)
"""Columns that only the store itself uses."""

ATTRIBUTES = (KEY.name, *(fact.name for fact in FACTS))
LABELS = tuple(fact.name for fact in FACTS if fact.kind == "text")
NUMBERS = tuple(fact.name for fact in FACTS if fact.kind != "text")
LIVING_ATTRIBUTES = frozenset(fact.name for fact in FACTS if fact.living)
"""Attributes that `memory.store.writing.writer.set_attribute` may change."""
