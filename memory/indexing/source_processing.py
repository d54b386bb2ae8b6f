"""Turns each file into a document with the vectors of its passages, or into the reason why there is none.

It needs no access to the store, only the facts passed with each file, so that other processes can do it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from speckit_memory.config.workspace.options import SHIPPED_RULES, SavingRules
from speckit_memory.errors import Problem, SpeckitError, Where
from speckit_memory.memory.indexing.documents import build, content_hash
from speckit_memory.memory.intake import preflight, secrets
from speckit_memory.memory.intake.intake import Intake
from speckit_memory.memory.intake.source import Source
from speckit_memory.memory.models.embedders.static import StaticEmbedder
from speckit_memory.memory.models.passage_vectors import PassageBatch, document_texts, passages_of
from speckit_memory.memory.parsing import generated
from speckit_memory.memory.parsing.analysis import Analyser
from speckit_memory.memory.parsing.markdown.chunks import ChunkSizes
from speckit_memory.memory.scanning import lfs_pointer
from speckit_memory.memory.scanning.commit_times import CommitTimes
from speckit_memory.memory.scanning.scanner import FoundFile
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.writing.writer import fingerprint

LARGE = 1_000_000
"""Bytes of files that a helper processes per list; the writing process handles the excess."""


@dataclass(frozen=True, slots=True)
class SourceTask:
    """A file to read, with the hash of its stored content; "" for a file that was never stored, or that must be written
    even if unchanged. `stored` says whether it has a memory; `committed` holds its commit times."""

    file: FoundFile
    stored: bool = False
    stored_hash: str = ""
    committed: CommitTimes | None = None


@dataclass(slots=True)
class ProcessedSource:
    """The result of processing a source. Without a `document` it has `failures`, a reason in `problems`, the unchanged
    file's modification time `unchanged_since` (ns), or the reason why it is `ignored`; none of these if the file was
    deleted since the scan.

    `targets` are the targets of the document's links with their places. `passages` and `fingerprint` are set if they
    have been computed; `intake` holds the changes made on intake.
    """

    key: str
    document: Document | None = None
    problems: list[Problem] = field(default_factory=list)
    failures: list[Problem] = field(default_factory=list)
    targets: list[tuple[str, Where]] = field(default_factory=list)
    unchanged_since: int | None = None
    ignored: str = ""
    passages: PassageBatch | None = None
    fingerprint: bytes | None = None
    intake: Intake | None = None


@dataclass(frozen=True, slots=True)
class SourceProcessor:
    """Builds documents by fixed sizes and rules. Calling it reads a file."""

    analyser: Analyser
    sizes: ChunkSizes
    rules: SavingRules = SHIPPED_RULES

    def made(self, task: SourceTask | Source) -> ProcessedSource:
        """Process a file or a source."""
        return self.of_source(task) if isinstance(task, Source) else self(task)

    def __call__(self, task: SourceTask) -> ProcessedSource:
        """Read and process a file. An empty file makes no memory, but if it has one, that stays with its learned state.
        A file with only text written by `init` and a Git LFS pointer are ignored even if they have a memory."""
        file = task.file
        try:
            text, mtime_ns = file.read()
        except SpeckitError as error:
            # E010, deleted since the scan: not an error, the next run will find it gone.
            return ProcessedSource(file.key, failures=[problem for problem in error.problems if error.code != "E010"])
        if lfs_pointer.is_pointer(text):
            return ProcessedSource(file.key, ignored=lfs_pointer.POINTER)
        if task.stored_hash and task.stored_hash == content_hash(text):
            return ProcessedSource(file.key, unchanged_since=mtime_ns)
        if not task.stored and not text.strip():
            return ProcessedSource(file.key, problems=[preflight.no_text(text, file.key)])
        source = Source(file.key, text, file=file.path, mtime_ns=mtime_ns, committed=task.committed)
        made = self.of_source(source, stored=task.stored)
        if made.intake and made.intake.only_generated:
            return ProcessedSource(file.key, ignored=generated.IGNORED)
        return made

    def of_source(self, source: Source, *, stored: bool = False) -> ProcessedSource:
        """Build the document of a source. A parser error is a failure (E090), so that it does not stop a whole run.

        A source with only recalled text makes no document, unless it is `stored`: then its memory is emptied.
        """
        if kind := secrets.secret_kind_of_name(source.key) if self.rules.secrets != "keep" else "":
            return ProcessedSource(source.key, failures=[secrets.in_name(source.key, kind)])
        if lfs_pointer.is_pointer(source.text):
            actions = ("fetch its content with `git lfs pull`",)
            message = f"{source.key}: not a document but a {lfs_pointer.POINTER}"
            return ProcessedSource(source.key, failures=[Problem("E090", message, actions=actions)])
        targets: list[tuple[str, Where]] = []
        intake = Intake()
        try:
            document, problems = build(source, self.analyser, self.sizes, targets, self.rules, intake)
        except SpeckitError as error:
            return ProcessedSource(source.key, failures=list(error.problems))
        except Exception as error:  # an unexpected error of one document must not end the run
            message = f"{source.key}: the document cannot be read: {type(error).__name__}: {error}"
            return ProcessedSource(source.key, failures=[Problem("E090", message)])
        if intake.only_generated or (intake.only_recalled and not stored):
            return ProcessedSource(source.key, problems=problems, intake=intake)
        return ProcessedSource(document.key, document, problems, targets=targets, intake=intake)


def with_passages(made: Iterable[ProcessedSource], embedder: StaticEmbedder | None) -> list[ProcessedSource]:
    """Add the fingerprints and vectors, which can be computed without the store."""
    known = list(made)
    documents = [each.document for each in known if each.document is not None]
    found: Callable[[], PassageBatch] | None = None
    if embedder is not None:
        passages = iter(passages_of(embedder, [document_texts(document, embedder) for document in documents]))
        found = passages.__next__
    for each in known:
        if each.document is not None:
            each.fingerprint = fingerprint(each.document)
            each.passages = found() if found else None
    return known
