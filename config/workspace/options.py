"""What `.speckit/config.yaml` can set: every setting with its type, default and accepted values (docs/workspace.md).

Imports neither YAML nor pydantic: processes without such a file need the defaults alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, get_args

from annotated_types import Interval

from speckit_memory.config.files.patterns import compile_patterns
from speckit_memory.config.workspace.formats import FORMATS
from speckit_memory.config.workspace.store_address import ADDRESS, is_address
from speckit_memory.config.yaml.accepted import Accepted
from speckit_memory.errors import Where

EntityLinking = Literal["off", "link"]
"""Whether documents that share names are linked (feature M10): with `link` background work does it; with `off`, only an
explicit request does."""
ToolProfile = Literal["core", "full"]
"""The tools that an agent is offered. `core`: those for daily work, `full`: every tool
(docs/decisions/0073-recall-per-token.md)."""
TOOL_PROFILES: tuple[ToolProfile, ...] = get_args(ToolProfile)
Mode = Literal["trusted", "isolated", "none"]
"""Where components of installed extensions run: in this process, in a separate process, or not at all; from the least
to the most strict."""
MODES: tuple[Mode, ...] = get_args(Mode)

DEADLINE_MS = 2_000.0
"""Far above every budget: a safety net. The time for opening the store does not count."""
LONGEST_MS = 1e9
"""Eleven days. Larger values mean no deadline, and would overflow clocks that count nanoseconds."""
MEMORY_MB = 2048
"""Default address space in megabytes of the process of isolated extensions."""
LEAST_MEMORY_MB = 256
"""The minimum with which the process can start: Python and numpy alone take half of it."""
MOST_MEMORY_MB = 10**9
ABSENT_DAYS = 90.0
"""Days after which background work deletes a memory whose file is absent, unless the workspace sets another number."""
LAG_SECONDS = 30.0
"""How far a replica may be behind the store that searches read from it."""
LEAST_PASSAGES = 200_000
"""Comparing this many vectors takes 20 ms of one processor, the index 6 ms. For fewer, importing the index library
takes longer than a process with a single query would gain."""
MOST_PASSAGES = 10**9
MOST_DAYS = 3_650


_SHARE = Accepted("a share of the queries from 0 to 1")


def _number(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and _number(value, least, most)


def _milliseconds(value: Any) -> float | None:
    """A deadline; None for no deadline."""
    if not _number(value, 0, math.inf) or value == math.inf:
        raise ValueError
    return min(float(value), LONGEST_MS) or None


def _megabytes(value: Any) -> int:
    if (value != 0 and not _whole(value, LEAST_MEMORY_MB, MOST_MEMORY_MB)) or not _whole(value, 0, MOST_MEMORY_MB):
        raise ValueError
    return int(value)


def _days_of_texts(value: Any) -> int:
    if value != "never" and not _whole(value, 0, MOST_DAYS):
        raise ValueError
    return 0 if value == "never" else int(value)


@dataclass(frozen=True, slots=True)
class SourcePattern:
    """A pattern in the syntax of `.gitignore`, relative to the workspace root, and its place."""

    text: str
    where: Where


def _pattern(key: str, value: Any) -> SourcePattern:
    """A pattern of `key`; one without effect is most likely a mistake."""
    if not isinstance(value, str):
        raise ValueError
    reason = _useless(value, key)
    if reason:
        raise ValueError(f"'{value}' is not a pattern for '{key}': {reason}")
    return SourcePattern(str(value), value.where)  # type: ignore[attr-defined]  # the binder gives texts their places


def _useless(pattern: str, key: str) -> str:
    """Why a pattern has no effect, "" if it may have one. The library accepts blanks and comments, which have none."""
    if {".", ".."} & set(pattern.split("/")):
        return "it is relative to the workspace root, and must not contain '.' or '..'"
    if key == "include" and pattern.startswith("!"):
        return "unwanted files belong under 'exclude'"
    try:
        meant = any(made.include is not None for made in compile_patterns([pattern]).patterns)
    except ValueError:
        meant = False
    return "" if meant else "it matches nothing"


def _address(value: Any) -> str:
    """The address of a store in PostgreSQL."""
    if not isinstance(value, str) or not is_address(value):
        raise ValueError
    return str(value)


def _format(value: Any) -> str:
    if value not in FORMATS:
        raise ValueError
    return str(value)


_ADDRESS = Accepted(f"the address of a store in PostgreSQL, {ADDRESS}", _address, example=ADDRESS)
_PATTERN = Accepted(
    "a text; put it in quotes",
    item="a pattern",
    hint="A pattern is a path below the workspace root in the syntax of .gitignore: * ? [a-z] and **.",
)
_PATTERNS = Accepted("a list of patterns, such as ['drafts/', '*.tmp.md']")
_FORMAT = Accepted(f"one of {', '.join(FORMATS)}", _format, "a format")


@dataclass(frozen=True, slots=True)
class SourcePatterns:
    """Which files are indexed, see `docs/workspace.md`; the default files if there is no pattern.

    `formats` are names of `FORMATS` that are indexed in addition to Markdown and plain text.
    """

    include: Annotated[
        tuple[Annotated[SourcePattern, replace(_PATTERN, read=partial(_pattern, "include"))], ...], _PATTERNS
    ] = ()
    exclude: Annotated[
        tuple[Annotated[SourcePattern, replace(_PATTERN, read=partial(_pattern, "exclude"))], ...], _PATTERNS
    ] = ()
    formats: Annotated[tuple[Annotated[str, _FORMAT], ...], Accepted(f"a list of {' and '.join(FORMATS)}")] = ()


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """Which data of served queries are recorded, and for how long (docs/workspace.md).

    `record`: all served queries, only those that another pipeline answered too, or none; `keep_texts`: days for which
    the words of a query are kept for replay, 0 for never; `observe`: share of queries with scores recorded by step
    (feature E7); `sample`: share of queries recorded. Shares are in [0, 1].
    """

    record: Literal["all", "shadows", "off"] = "all"
    keep_texts: Annotated[int, Accepted(f"never, or a whole number of days up to {MOST_DAYS}", _days_of_texts)] = 7
    keep_days: Annotated[
        int, Interval(ge=1, le=MOST_DAYS), Accepted(f"a whole number of days from 1 to {MOST_DAYS}")
    ] = 90
    max_mb: Annotated[int, Interval(ge=1, le=10_000), Accepted("a whole number of megabytes from 1 to 10000")] = 50
    observe: Annotated[float, Interval(ge=0, le=1), _SHARE] = 0.05
    sample: Annotated[float, Interval(ge=0, le=1), _SHARE] = 1.0

    @property
    def texts(self) -> bool:
        """Whether the words of queries are kept at all."""
        return self.keep_texts > 0


@dataclass(frozen=True, slots=True)
class VectorIndexing:
    """The number of passages from which an approximate index finds the nearest vectors (docs/large-stores.md).

    Stores of at least `least` passages get an index, none for None; `used`: whether searches use it.
    """

    least: int | None = LEAST_PASSAGES
    used: bool = True

    @classmethod
    def of(cls, value: Any) -> VectorIndexing:
        """A setting: a number of passages, "exact", which keeps an index for other processes and answers without it,
        or "off". Raises ValueError for anything else."""
        if value == "exact":
            return cls(used=False)
        if value == "off":
            return cls(None, used=False)
        if not _whole(value, 0, MOST_PASSAGES):
            raise ValueError
        return cls(int(value))

    def wanted(self, passages: int) -> bool:
        """Whether a store with this number of passages gets an index."""
        return self.least is not None and passages >= max(self.least, 1)

    def answers(self, passages: int) -> bool:
        """Whether searches use the index of a store with this number of passages."""
        return self.used and self.wanted(passages)


@dataclass(frozen=True, slots=True)
class SavingRules:
    """The rules of a workspace for saving documents (docs/saving.md).

    `secrets`: the kinds left out of stored texts; "all" includes e-mail addresses, "keep" leaves nothing out.
    `quality`: whether poor documents are improved as stored ("mend"), or rejected when saved if they stay poor
    ("require"), or only scored. `prediction_error`: whether a save changes memories that it repeats or contradicts, or
    is only reported. `passages`: whether all passages are searched, or only those with enough content.
    """

    secrets: Literal["credentials", "all", "keep"] = "credentials"
    quality: Literal["report", "mend", "require"] = "report"
    prediction_error: Literal["act", "report"] = "act"
    passages: Literal["all", "thinned"] = "all"


@dataclass(frozen=True, slots=True)
class CheckpointLimits:
    """How many checkpoints of a store are kept, and for how long (docs/checkpoints.md).

    `keep`: number of checkpoints kept; a new one replaces the oldest, as each is a copy of the store. `days`: older
    ones are deleted; None for never.
    """

    keep: Annotated[int, Interval(ge=1, le=1_000), Accepted("a whole number from 1 to 1,000")] = 10
    days: Annotated[float | None, Interval(gt=0, lt=1e6), Accepted("a number of days above 0, or null")] = None


@dataclass(frozen=True, slots=True)
class WorkspaceConfig:
    """The settings of a workspace, in the order and form of the file.

    `store` is "" for the store's file in the workspace. Searches read from the replicas at `read_from` that are at
    most `read_lag_seconds` behind (docs/postgresql.md). `deadline_ms` is that of searches, None for none.
    `absent_days` is how long a memory whose file is absent is kept (docs/lifecycle.md), `extensions_memory_mb` 0 for
    no limit. `origins` tells where each value that is not the default was set: the place of its key in the file, or the
    name of an environment variable.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    store: Annotated[str, _ADDRESS] = ""
    read_from: Annotated[
        tuple[Annotated[str, replace(_ADDRESS, item="an address")], ...],
        Accepted("a list of addresses", example=f"[{ADDRESS}]"),
    ] = ()
    read_lag_seconds: Annotated[float, Interval(ge=0, le=1e6), Accepted("a number of seconds from 0 to 1,000,000")] = (
        LAG_SECONDS
    )
    sources: SourcePatterns = SourcePatterns()
    deadline_ms: Annotated[
        float | None, Accepted("a number of milliseconds, 0 for no deadline", _milliseconds, example="2000")
    ] = DEADLINE_MS
    extensions: Mode = "isolated"
    extensions_memory_mb: Annotated[
        int,
        Accepted(
            f"a whole number of megabytes from {LEAST_MEMORY_MB} up, or 0 for no limit", _megabytes, example="2048"
        ),
    ] = MEMORY_MB
    evaluation: RecordingOptions = RecordingOptions()
    vector_index: Annotated[
        VectorIndexing,
        Accepted(
            f'a whole number of passages from 0 to {MOST_PASSAGES}, "exact" or "off"',
            VectorIndexing.of,
            example=str(LEAST_PASSAGES),
        ),
    ] = VectorIndexing()
    saving: SavingRules = SavingRules()
    checkpoints: CheckpointLimits = CheckpointLimits()
    absent_days: Annotated[
        float, Interval(gt=0, lt=1_000_000), Accepted("a number of days above 0 and below 1,000,000")
    ] = ABSENT_DAYS
    entities: EntityLinking = "off"
    profile: ToolProfile = "full"
    origins: Mapping[str, Where | str] = field(default_factory=dict, init=False)


SHIPPED_RULES = SavingRules()
SHIPPED_INDEXING = VectorIndexing()
KEYS = tuple(one.name for one in fields(WorkspaceConfig) if one.init)
"""The keys of the file."""
