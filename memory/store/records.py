"""Values that the store accepts and returns. All are frozen; all times are seconds since the Unix epoch, UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

UNKNOWN_TIME = 0.0
"""The stored value of an unknown time of creation or change: no document dates from the epoch."""

EXPIRES = "expires_at"
"""Key in `Document.extra` of the expiry that the document declares, in seconds since the epoch."""
LATEST = 9_223_372_036.0
EARLIEST = -LATEST
"""The range of times that 64-bit nanoseconds can hold, 1677-09-21 to 2262-04-11, in seconds. Times outside it are
taken for mistakes of a file, clock or document."""


def known_time(seconds: float | None) -> float | None:
    """The time; None where it is unknown or outside `EARLIEST` to `LATEST`."""
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

    `heading` is the path of headings above the passage ("Design > Fusion"), `anchor` the id of the ANCHOR section that
    contains it; both are empty when there is none. Lines count from 1 within the document. `text` is shown and
    searched; `tokens` is its analysed form (see `memory.parsing.analysis`), in order, repeats included.
    """

    text: str
    heading: str = ""
    anchor: str = ""
    first_line: int = 1
    last_line: int = 1
    tokens: tuple[str, ...] = ()


MENTION = "links to it: "
"""Prefix of the evidence of a link found in running text rather than declared. Any other edge replaces such an edge."""


@dataclass(frozen=True, slots=True)
class Link:
    """A causal link from the memory that declares it to the memory with key `target` (feature I3)."""

    relation: Relation
    target: str
    strength: float = 1.0
    evidence: str = ""
    reverse: bool = False
    """True when the declaring memory is the target of the edge ("caused_by: X" is the edge X caused this)."""


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
    """None where unknown; 0 means the time of writing. The same holds for `updated_at`."""
    updated_at: float | None = 0.0
    mtime_ns: int | None = None
    expires_at: float | None = None
    """The time from which searches no longer find it; None if it declares no expiry (see `docs/lifecycle.md`)."""
    importance_weight: float = 0.5
    extra: dict[str, str] = field(default_factory=dict)
    """Front matter that the product does not interpret, kept so that nothing is lost."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """A memory's rise to the tier critical on readers' judgements: its former tier, the evidence and the time."""

    from_tier: Tier
    confidence: float
    validation_count: int
    promoted_at: float


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A stored memory as tools show it (without its passages). Unknown times are None."""

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
    """The readers' judgement, in [0, 1]; 0.5 until the first one."""
    validation_count: int
    embedding_status: str
    """'done' or 'pending'."""
    chunk_count: int
    characters: int
    triggers: tuple[str, ...]
    promotion: Promotion | None
    """None where the tier is the one that the document declares."""
    created_by: str = ""
    """The principal that wrote it first, "" for none."""


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
    """The strength given by its creator, where use has changed `strength` since; otherwise None."""
    principal: str = ""
    """The principal that added it, "" for none."""
