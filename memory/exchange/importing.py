"""Imports memories into a store in one transaction that ends with a consistency check (feature M14).

Texts are first indexed in a temporary store, so that slow work happens before the transaction. Files are written as its
last step. A killed import leaves the store unchanged, and files with the imported contents.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import list_names
from speckit_memory.memory.editing import placed_file
from speckit_memory.memory.exchange.decisions import ImportDecision, Outcome, known
from speckit_memory.memory.exchange.offers import ImportSource
from speckit_memory.memory.indexing.versions import ANALYSER, INTAKE
from speckit_memory.memory.intake.index_report import IndexReport
from speckit_memory.memory.intake.source import Source
from speckit_memory.memory.parsing.declarations import front_matter
from speckit_memory.memory.parsing.encoding import decode
from speckit_memory.memory.scanning import inside
from speckit_memory.memory.scanning.scanner import below
from speckit_memory.memory.store.checkpoints.checkpoint_file import complete, reading
from speckit_memory.memory.store.checkpoints.folder import Folder
from speckit_memory.memory.store.file.checking.consistency import inconsistencies
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.tables.memories import source_paths
from speckit_memory.memory.store.tables.meta import get_meta, set_meta
from speckit_memory.memory.store.transfer import arrival, copying
from speckit_memory.memory.store.transfer.records import IncomingMemory, apply
from speckit_memory.memory.store.writing import writer


class FileTransaction:
    """Writes files one by one; overwritten files are first copied to a backup folder, under the same paths."""

    def __init__(self, root: Path, aside: Path) -> None:
        """`aside` is the backup folder, created when needed."""
        self.written: list[str] = []
        self._root = root
        self._aside = aside
        self._over: set[str] = set()
        self._at = str(root)

    @contextmanager
    def undone_on_error(self) -> Iterator[Self]:
        """Restore everything when the block raises. Raises E066 for an OSError."""
        try:
            yield self
        except BaseException as error:
            self._undo()
            if isinstance(error, OSError):
                raise SpeckitError("E066", f"{self._at}: {inside.reason(error)}") from error
            raise

    def put(self, key: str, data: bytes, *, over: bool, mtime_ns: int | None) -> None:
        """Write one file of the workspace.

        Args:
            key: Its path in the workspace.
            data: Its contents.
            over: Whether it replaces a file, which is backed up first.
            mtime_ns: Modification time to set; None for the present.

        Raises:
            OSError: The file cannot be written.
        """
        self._at = key
        if over:
            kept = self._aside / key
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self._root / key, kept)
            self._over.add(key)
        # Noted before writing: a write that fails half-way is undone as well.
        self.written.append(key)
        try:
            placed_file.put_file(self._root, key, data, over=over, mtime_ns=mtime_ns, sync=True)
        except OSError:
            self.written.remove(key)
            raise

    def _undo(self) -> None:
        for key in self.written:
            with suppress(OSError):
                if key in self._over:
                    shutil.copy2(self._aside / key, self._root / key)
                else:
                    (self._root / key).unlink()
                    for parent in Path(key).parents[:-1]:
                        # Fails for the first folder that is not empty, which ends the loop.
                        (self._root / parent).rmdir()
        if self._over:
            shutil.rmtree(self._aside, ignore_errors=True)


NAMED = 3
TAKEN_IN = (ANALYSER, INTAKE)
"""Meta keys that describe how documents were analysed: an empty store takes over those of the import."""

Index = Callable[[Database, Iterator[Source]], IndexReport]
"""Indexes documents in an empty store."""


@dataclass(frozen=True, slots=True)
class ImportedMemory:
    """The outcome for one memory; `why` gives the reason.

    "kept" means that the memory here is a different or newer one and was not changed.
    """

    key: str
    outcome: Outcome
    why: str


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of an import or its dry run.

    `written` are keys of files created or overwritten; overwritten files were copied to `aside`, and `checkpoint` holds
    the store before, None and "" if nothing was replaced. `left_out` counts rows, such as links, that refer to memories
    which do not exist here; `pending` passages wait for vectors.
    """

    memories: tuple[ImportedMemory, ...]
    written: tuple[str, ...] = ()
    checkpoint: str = ""
    aside: Path | None = None
    left_out: int = 0
    pending: int = 0
    dry_run: bool = False

    def count(self, outcome: str) -> int:
        """The number of memories with this outcome."""
        return sum(one.outcome == outcome for one in self.memories)


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """The target of an import: a store, the folder of its files, and a folder for backups of overwritten files."""

    database: Database
    root: Path
    aside: Path


def run(
    workspace: ImportTarget, source: ImportSource, plan: Sequence[ImportDecision], index: Index, *, now: float
) -> ImportResult:
    """Carry out the decisions.

    Args:
        workspace: The target.
        source: The source of the texts.
        plan: The decisions, one per offer.
        index: Indexes the texts in a temporary store.
        now: The present time in epoch seconds.

    Raises:
        SpeckitError: E065 or E066; the store and the files are then unchanged.
    """
    shelf = Folder(workspace.database.path)
    with (
        shelf.changing(),
        shelf.partial() as partial,
        _staged(partial, workspace.root, source, plan, index) as (staged, settled),
        workspace.database.write() as txn,
    ):
        return _Import(workspace, source, settled, txn, now).run(staged)


def outcomes(plan: Iterable[ImportDecision]) -> tuple[ImportedMemory, ...]:
    """The outcomes of decisions."""
    return tuple(ImportedMemory(each.offer.key, each.outcome, each.why) for each in plan)


@contextmanager
def _staged(
    partial: Path, root: Path, source: ImportSource, plan: Sequence[ImportDecision], index: Index
) -> Iterator[tuple[Connection, list[ImportDecision]]]:
    """A temporary store with the imported texts, and the plan with failed texts refused."""
    with Database.open(partial) as store:
        report = index(store, _sources(root, source, plan))
    complete(partial)
    why = {problem.where.file: problem.message for problem in report.failures if problem.where}
    with closing(reading(partial)) as staged:
        there = {key for (key,) in rows(staged, "SELECT key FROM memories")}
        settled = [
            each
            if not each.text or each.offer.key in there
            else ImportDecision(each.offer, "refused", why.get(each.offer.key, "it cannot be indexed"), each.ours)
            for each in plan
        ]
        yield staged, settled


def _sources(root: Path, source: ImportSource, plan: Sequence[ImportDecision]) -> Iterator[Source]:
    for each in plan:
        if not each.text:
            continue
        offer = each.offer
        text = decode(source.data(offer), offer.key)
        if offer.is_file or (each.ours and each.ours.is_file):
            file = source.top / offer.place if each.write else root / offer.key
            yield Source(offer.key, text, file=file, mtime_ns=file.stat().st_mtime_ns)
        else:
            said, _ = front_matter.parse(text, offer.key)
            folder = offer.record.memory.get("folder") if offer.record else None
            yield Source(offer.key, text, title=said.title, folder=folder if isinstance(folder, str) else None)


class _Import:
    def __init__(
        self,
        workspace: ImportTarget,
        source: ImportSource,
        plan: Sequence[ImportDecision],
        txn: Transaction,
        now: float,
    ) -> None:
        self._workspace = workspace
        self._source = source
        self._plan = plan
        self._txn = txn
        self._connection = txn.connection
        self._now = now
        self._root = source_paths.root_name(workspace.root, workspace.database.path)

    def run(self, staged: Connection) -> ImportResult:
        # Faults that the store had before are not blamed on the import.
        wrong = set(inconsistencies(self._connection))
        count = value(self._connection, "SELECT count(*) FROM memories")
        self._require_as_decided()
        self._take_facts(staged)
        coming = [each for each in self._plan if each.text]
        knowing = [each for each in self._plan if each.text or each.record]
        # The memories at the other end of their links change as well.
        ends = self._neighbours([each.ours.id for each in knowing if each.ours])
        pending, folders = self._copy(staged, coming)
        ids = dict(rows(self._connection, "SELECT key, id FROM memories"))
        arriving = [
            IncomingMemory(ids[each.offer.key], each.offer.key, each.knowledge, each.as_exported and each.record)
            for each in knowing
            if each.knowledge is not None
        ]
        left_out = apply(self._txn, arriving, self._source.loose, self._root)
        self._remember_sources(coming)
        touched = [ids[each.offer.key] for each in knowing]
        arrival.note(self._txn, touched, folders, self._now, {*ends, *self._neighbours(touched)})
        self._require_sound(wrong, count)
        # Last step of the transaction: an error here restores the files, and rolls the store back.
        with FileTransaction(self._workspace.root, self._workspace.aside).undone_on_error() as placing:
            for each in coming:
                if each.write:
                    data, mtime_ns = self._source.data(each.offer), each.mtime_ns
                    placing.put(each.offer.key, data, over=each.over, mtime_ns=mtime_ns)
            self._note_times(coming, ids)
        return ImportResult(outcomes(self._plan), tuple(placing.written), left_out=left_out, pending=pending)

    def _require_as_decided(self) -> None:
        """Raise E066 if one of the memories was changed since the decision. Newer learned data is used."""
        now = known(self._connection, [each.offer for each in self._plan])
        for each, ours in zip(self._plan, now, strict=True):
            before = each.ours
            if (ours and (ours.id, ours.content_hash)) != (before and (before.id, before.content_hash)):
                raise SpeckitError("E066", f"{each.offer.key} was changed in the store meanwhile")
        self._plan = [replace(each, ours=ours) for each, ours in zip(self._plan, now, strict=True)]

    def _take_facts(self, staged: Connection) -> None:
        if (why := arrival.other_words(staged, self._connection)) and any(each.text for each in self._plan):
            raise SpeckitError("E066", f"{why}; nothing was changed", actions=("index the workspace, then import",))
        for fact in TAKEN_IN:
            found = get_meta(staged, fact)
            # An empty store has not analysed anything yet.
            if found is not None and get_meta(self._connection, fact) is None:
                set_meta(self._txn, fact, found)

    def _copy(self, staged: Connection, coming: Sequence[ImportDecision]) -> tuple[int, set[str]]:
        """Copy the indexed contents over those of existing memories; returns what `copying.copy` does."""
        here = {each.offer.key: each.ours.id for each in coming if each.ours}
        theirs = rows(staged, "SELECT id, key FROM memories ORDER BY id")
        memories = {row: here[key] for row, key in theirs if key in here}
        return copying.copy(staged, self._txn, dict(theirs), memories, whole=False, keep_ids=False)

    def _remember_sources(self, coming: Sequence[ImportDecision]) -> None:
        """Record imported files as sources unless a source contains them: an index run must notice their deletion."""
        sources = dict(source_paths.source_paths(self._connection, self._root))
        if self._source.into and not self._source.exported and len(coming) > 1:
            sources[self._source.into] = False
        for each in coming:
            key = each.offer.key
            if (each.offer.is_file or (each.ours and each.ours.is_file)) and not any(below(key, at) for at in sources):
                sources[key] = False
        source_paths.remember(self._txn, self._root, sources)

    def _require_sound(self, wrong: set[str], count: int) -> None:
        created = sum(each.outcome == "created" for each in self._plan)
        found = value(self._connection, "SELECT count(*) FROM memories")
        if found != count + created:
            raise SpeckitError("E066", f"there would be {found} memories instead of {count + created}")
        if new := [fault for fault in inconsistencies(self._connection) if fault not in wrong]:
            raise SpeckitError("E066", f"the store would become inconsistent: {list_names(new, NAMED, '; ')}")

    def _note_times(self, coming: Sequence[ImportDecision], ids: Mapping[str, int]) -> None:
        """Store the present modification times of the files, so that the next index run does not read them again."""
        times: dict[int, int] = {}
        for each in coming:
            if each.offer.is_file or (each.ours and each.ours.is_file):
                times[ids[each.offer.key]] = (self._workspace.root / each.offer.key).stat().st_mtime_ns
        writer.touch_mtime(self._txn, times)

    def _neighbours(self, memories: Sequence[int]) -> set[int]:
        found = rows(
            self._connection,
            "SELECT target_id FROM causal_edges WHERE source_id IN (SELECT value FROM carray(?))",
            (integers(memories),),
        )
        return {number for (number,) in found}
