"""The input and output values of an index run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from speckit_memory.config.workspace.options import ABSENT_DAYS
from speckit_memory.errors import Problem
from speckit_memory.memory.store.records import Document

if TYPE_CHECKING:
    from speckit_memory.memory.intake.intake import Intake
    from speckit_memory.memory.intake.prediction_error import Verdict
    from speckit_memory.memory.intake.secrets import Secret
    from speckit_memory.memory.scanning.moves import FileMove


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """The progress of a run. `total` is None while unknown; `key` is the last finished document. After the last file, a
    second `phase` counts the parts of the search index."""

    done: int
    total: int | None
    key: str
    phase: Literal["", "search index"] = ""


OnProgress = Callable[[IndexProgress], None]


@dataclass(slots=True)
class IndexReport:
    """The report of an index run: keys by outcome, and counts.

    `failures` explain why documents could not be indexed, `problems` what is wrong with documents that were indexed,
    and which new files are empty. `aliases` are groups of keys with equal content that no earlier run reported: one of
    them was written in this run, or is a new link to the file of another; `known_aliases` counts the other groups.
    `ignored` gives the reason for each document and folder (with a trailing "/") left out, `overruled` the reason why a
    named path would have been. `sources` are the keys of all named paths. `chunks` and `characters` count created and
    updated content. `embedded` counts computed vectors, `cache_hits` those from the cache, `pending` memories without
    vectors. `redacted` counts secrets by kind, `recalled` blocks pasted from answers, `mended` repaired documents.
    `absent` are memories without a file, kept for `absent_days`; `vanished` those that lost it since the last run;
    `returned` those whose file is back, which are also updated or unchanged. `verdicts` say, by key, what new documents
    repeat or contradict. `renamed` are memories that followed their files and are in no other list.
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
    renamed: list[FileMove] = field(default_factory=list)

    def follow(self, moves: Sequence[FileMove]) -> None:
        """Record moves, and remove the moved documents from the updated and unchanged ones."""
        self.renamed += moves
        moved = {move.new for move in moves}
        self.updated = [key for key in self.updated if key not in moved]
        self.unchanged = [key for key in self.unchanged if key not in moved]

    def followed_by(self, later: IndexReport) -> IndexReport:
        """Return the combined report of this run and a later one of the same sources."""
        moved = {move.new for move in self.renamed}
        # A document written in the first run is not reported again as updated or unchanged by the later one.
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
        """Count the changes made to one document on intake."""
        for secret in intake.secrets:
            self.redacted[secret.kind] = self.redacted.get(secret.kind, 0) + 1
        self.recalled += len(intake.recalled)
        self.mended += bool(intake.quality and intake.quality.mended)

    def count(self, document: Document) -> None:
        """Count the size of a document that was created or updated."""
        self.chunks += len(document.chunks)
        self.characters += len(document.body)


class SavedLink(NamedTuple):
    """A link requested with a save, and why it is stored but not declared in the document ("" if it is declared)."""

    relation: str
    target: str
    only_stored: str = ""


@dataclass(frozen=True, slots=True)
class SaveResult:
    """The result of saving one document. `id` is None in a dry run of a new one. `tokens` estimates its length for a
    language model, and `duplicates` are keys of memories with the same content; 0 and empty if the checks were skipped.
    `verdict` is its relation to the nearest memory, None if that was not judged; `intake` holds the omissions and
    repairs; `links` are those requested with the save."""

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

    def without(self, left_out: Sequence[Secret]) -> SaveResult:
        """Return the result with secrets that were redacted before the text was written to the file."""
        if not left_out:
            return self
        told = [
            Problem(
                "E097", f"{secret.kind} in line {secret.line} of the given text is left out of the file and the store"
            )
            for secret in left_out
        ]
        intake = replace(self.intake, secrets=(*left_out, *self.intake.secrets))
        return replace(self, problems=(*told, *self.problems), intake=intake)
