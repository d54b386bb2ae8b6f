"""The values that cross the border of the store. All frozen; all times are seconds since the Unix epoch, UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

UNKNOWN_TIME = 0.0
"""What the store holds where nobody knows when a memory was made or changed: no document dates from that moment."""

EXPIRES = "expires_at"
"""Among what a document says besides (`Document.extra`), the end that it declares, in seconds."""
LATEST = 9_223_372_036.0
EARLIEST = -LATEST
"""The times that 64 bits of nanoseconds hold, 1677-09-21 to 2262-04-11, in seconds. Files, clocks and documents that
name others are mistaken."""


def known_time(seconds: float | None) -> float | None:
    """The time, None where it is not known or outside these borders."""
    return seconds if seconds is not None and EARLIEST <= seconds <= LATEST else None


class Tier(StrEnum):
    """Importance tiers, most important first (feature F7)."""

    CONSTITUTIONAL = "constitutional"
    CRITICAL = "critical"
    IMPORTANT = "important"
    NORMAL = "normal"
    TEMPORARY = "temporary"
    DEPRECATED = "deprecated"


class Relation(StrEnum):
    """Relations of the causal graph; an edge reads "source RELATION target" (feature M7)."""

    CAUSED = "caused"
    ENABLED = "enabled"
    SUPERSEDES = "supersedes"
    CONTRADICTS = "contradicts"
    DERIVED_FROM = "derived_from"
    SUPPORTS = "supports"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a memory, in document order.

    `heading` is the path of headings above it ("Design > Fusion"), `anchor` the id of the ANCHOR section it lies in,
    both empty when there is none. Lines count from 1 and refer to the document; `text` is what is shown and searched.
    `tokens` is the analysed text (see `memory.parsing.analysis`), in order, repeats included.
    """

    text: str
    heading: str = ""
    anchor: str = ""
    first_line: int = 1
    last_line: int = 1
    tokens: tuple[str, ...] = ()


MENTION = "links to it: "
"""How the evidence of a link begins that a text makes in passing, without declaring anything. Such an edge gives way to
any other."""


@dataclass(frozen=True, slots=True)
class Link:
    """A causal link from the memory that declares it to the memory with key `target` (feature I3)."""

    relation: Relation
    target: str
    strength: float = 1.0
    evidence: str = ""
    reverse: bool = False
    """True when the declared memory is the target of the edge ("caused_by: X" is the edge X caused this)."""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document, ready to be written as one memory with all its rows.

    `key` is the stable name of the memory: its path relative to the workspace root, or a dataset's document id.
    Analysed fields (`title_tokens`, `trigger_tokens`, `path_tokens`) come from the same analyser as the chunks' tokens.
    """

    key: str
    title: str
    body: str
    content_hash: str
    folder: str = ""
    tier: Tier = Tier.NORMAL
    context_type: str = "general"
    document_type: str = "memory"
    memory_type: str = "declarative"
    spec_level: int | None = None
    triggers: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    title_tokens: tuple[str, ...] = ()
    trigger_tokens: tuple[str, ...] = ()
    path_tokens: tuple[str, ...] = ()
    created_at: float | None = 0.0
    """None where nobody knows; 0 stands for the time of writing. The same holds for `updated_at`."""
    updated_at: float | None = 0.0
    mtime_ns: int | None = None
    expires_at: float | None = None
    """From when on no search finds it; None where it declares nothing of the kind (see `docs/lifecycle.md`)."""
    importance_weight: float = 0.5
    extra: dict[str, str] = field(default_factory=dict)
    """Front matter that the product does not interpret, kept so that nothing is lost."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """That a memory was made critical because of what readers found: from which tier, on what evidence, and when."""

    from_tier: Tier
    confidence: float
    validation_count: int
    promoted_at: float


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A stored memory as tools show it (without its passages). Times are None where nobody knows them."""

    id: int
    key: str
    title: str
    folder: str
    tier: Tier
    context_type: str
    document_type: str
    content_hash: str
    created_at: float | None
    updated_at: float | None
    last_accessed: float | None
    access_count: int
    importance_weight: float
    confidence: float
    """What readers found, in [0, 1]; 0.5 until somebody judges."""
    validation_count: int
    embedding_status: str
    """'done' or 'pending'."""
    chunk_count: int
    characters: int
    triggers: tuple[str, ...]
    promotion: Promotion | None
    """None where the tier is what the document declares."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One causal edge between two stored memories."""

    id: int
    source_id: int
    target_id: int
    relation: Relation
    strength: float
    """In [0, 1]."""
    evidence: str
    created_by: str
    said: float | None = None
    """The strength that its maker gave it, where use has made it another since."""
