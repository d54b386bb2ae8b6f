"""What is put in and what comes out: the values of an index run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from speckit_memory.config.workspace.absence import ABSENT_DAYS
from speckit_memory.errors import Problem
from speckit_memory.memory.store.records import Document

if TYPE_CHECKING:
    from speckit_memory.memory.intake.intake import Intake
    from speckit_memory.memory.intake.prediction_error import Verdict
    from speckit_memory.memory.intake.secrets import Secret
    from speckit_memory.memory.scanning.moves import Move


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come. `total` is None while it is unknown, `key` is the document finished last. After the last
    document of files a second `phase` begins, which counts the parts of what searches read instead of the store."""

    done: int
    total: int | None
    key: str
    phase: Literal["", "search index"] = ""


OnProgress = Callable[[Progress], None]


@dataclass(slots=True)
class IndexReport:
    """The report of an index run: keys by what became of them, and counts.

    `failures` explain why a document could not be indexed, `problems` what is wrong with documents that were indexed
    all the same, and which new files hold no text. `aliases` are groups of keys with equal content that no earlier run
    has named: one of them was written in this run, or leads to the file of another since. `known_aliases` counts the
    other groups. `ignored` says why documents, and folders (with "/" at the end), were left out; `overruled` why what
    was taken by name would have been. `sources` are the keys of all that was indexed by name. `chunks` and `characters`
    count what was created or updated; what several runs at once have done adds up. `embedded` counts vectors that were
    computed, `cache_hits` those taken from the cache, `pending` memories left without. `redacted` counts secrets that
    were left out, by kind, `recalled` blocks of text that had come out of an answer, `mended` documents that were made
    easier to find. `absent` are memories whose files are not there, `vanished` those of them whose files were until
    this run, and `returned` are absent ones that were taken up again, which the updated and unchanged ones have as
    well. An absent one is kept for `absent_days`. `verdicts` tell what new documents repeat or contradict, by key.
    `renamed` are memories that followed their files to other places, which no other list has.
    """

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    absent_days: float = ABSENT_DAYS
    failures: list[Problem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    aliases: list[tuple[str, ...]] = field(default_factory=list)
    ignored: dict[str, str] = field(default_factory=dict)
    overruled: dict[str, str] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    known_aliases: int = 0
    chunks: int = 0
    embedded: int = 0
    cache_hits: int = 0
    characters: int = 0
    pending: int = 0
    links: int = 0
    dry_run: bool = False
    redacted: dict[str, int] = field(default_factory=dict)
    recalled: int = 0
    mended: int = 0
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    renamed: list[Move] = field(default_factory=list)

    def follow(self, moves: Sequence[Move]) -> None:
        """Tells those of the documents brought up to date whose memories followed their files apart from the others."""
        self.renamed += moves
        moved = {move.new for move in moves}
        self.updated = [key for key in self.updated if key not in moved]
        self.unchanged = [key for key in self.unchanged if key not in moved]

    def followed_by(self, later: IndexReport) -> IndexReport:
        """The report of this run and a later one of the same sources, as if they were one."""
        moved = {move.new for move in self.renamed}
        written = dict.fromkeys([*self.created, *self.updated])
        gone = {*later.deleted, *later.vanished}
        return replace(
            later,
            created=[*dict.fromkeys([*(key for key in self.created if key not in gone), *later.created])],
            updated=[*self.updated, *(key for key in later.updated if key not in written)],
            unchanged=[key for key in later.unchanged if key not in written and key not in moved],
            deleted=[*self.deleted, *later.deleted],
            vanished=[*self.vanished, *later.vanished],
            returned=[*self.returned, *later.returned],
            failures=[*self.failures, *(one for one in later.failures if one not in self.failures)],
            problems=[*self.problems, *(one for one in later.problems if one not in self.problems)],
            chunks=self.chunks + later.chunks,
            redacted={
                kind: self.redacted.get(kind, 0) + later.redacted.get(kind, 0)
                for kind in {**self.redacted, **later.redacted}
            },
            recalled=self.recalled + later.recalled,
            mended=self.mended + later.mended,
            verdicts={**self.verdicts, **later.verdicts},
            renamed=[*self.renamed, *later.renamed],
            embedded=self.embedded + later.embedded,
            cache_hits=self.cache_hits + later.cache_hits,
            characters=self.characters + later.characters,
            links=self.links + later.links,
            aliases=[*self.aliases, *later.aliases],
        )

    def taken_in(self, intake: Intake) -> None:
        """Adds what one document was taken in with."""
        for secret in intake.secrets:
            self.redacted[secret.kind] = self.redacted.get(secret.kind, 0) + 1
        self.recalled += len(intake.recalled)
        self.mended += bool(intake.quality and intake.quality.mended)

    def count(self, document: Document) -> None:
        """Adds the size of a document that was created or updated."""
        self.chunks += len(document.chunks)
        self.characters += len(document.body)


class SavedLink(NamedTuple):
    """A link that saving a document was asked to make, and why no document declares it, "" where one does."""

    relation: str
    target: str
    only_stored: str = ""


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of one document. `id` is None in a dry run of a new one; `tokens` is an estimate of its length for a
    language model and `duplicates` are keys of memories with the same content: 0 and none where the checks were
    skipped. `verdict` tells what it is to the nearest memory, None where that was settled before; `intake` what was
    left out and mended as it was stored; `links` are those that the save was asked for."""

    key: str
    id: int | None
    outcome: Literal["created", "updated", "unchanged", "dry_run"]
    problems: tuple[Problem, ...]
    duplicates: tuple[str, ...]
    tokens: int
    chunks: int
    pending: bool
    verdict: Verdict | None
    intake: Intake
    links: tuple[SavedLink, ...] = ()

    def without(self, left_out: Sequence[Secret]) -> Saved:
        """The same of a text out of which these secrets were left before it became part of a file."""
        if not left_out:
            return self
        told = [
            Problem("E097", f"{secret.kind} in line {secret.line} of what was given left out of the file and the store")
            for secret in left_out
        ]
        intake = replace(self.intake, secrets=(*left_out, *self.intake.secrets))
        return replace(self, problems=(*told, *self.problems), intake=intake)
