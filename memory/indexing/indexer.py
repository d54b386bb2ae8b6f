"""Indexes files and datasets into memories (features I1 to I9)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from speckit_memory.config.workspace.options import SavingRules, SourcePatterns
from speckit_memory.config.workspace.workspace_file import load_workspace_config
from speckit_memory.errors import Problem, SpeckitError, Where
from speckit_memory.memory.indexing import versions
from speckit_memory.memory.indexing.batches import BatchWriter
from speckit_memory.memory.indexing.full_memories import resolve_and_tell
from speckit_memory.memory.indexing.moved_files import follow, follow_moves, found_moves, saved_move
from speckit_memory.memory.indexing.reader_processes import process_sources
from speckit_memory.memory.indexing.restored_files import REMOVED
from speckit_memory.memory.indexing.source_processing import ProcessedSource, SourceProcessor, SourceTask
from speckit_memory.memory.indexing.source_removal import forget, still_stored
from speckit_memory.memory.indexing.versions import ANALYSER, INTAKE, intake_version
from speckit_memory.memory.intake import aliases, judging, preflight, secrets, unfinished_saves
from speckit_memory.memory.intake.index_report import IndexProgress, IndexReport, OnProgress, SaveResult
from speckit_memory.memory.intake.intake import REMARKS, Intake
from speckit_memory.memory.intake.source import Source
from speckit_memory.memory.lifecycle import interference
from speckit_memory.memory.models.embedders.counting import counted_tokens
from speckit_memory.memory.models.embedders.protocol import Embedder
from speckit_memory.memory.parsing.analysis import Analyser
from speckit_memory.memory.parsing.declarations import causal_links
from speckit_memory.memory.parsing.keys import with_folders
from speckit_memory.memory.parsing.limits import few
from speckit_memory.memory.parsing.markdown.chunks import DEFAULT_SIZES, ChunkSizes
from speckit_memory.memory.scanning.commit_times import CommitTimes, commit_times
from speckit_memory.memory.scanning.exclusions import leave_alone
from speckit_memory.memory.scanning.metadata_file import metadata_file
from speckit_memory.memory.scanning.missing_paths import missing_path
from speckit_memory.memory.scanning.reappeared_files import ReappearedFiles
from speckit_memory.memory.scanning.scanner import FoundFile, Scan, decide, scan
from speckit_memory.memory.scanning.workspace_sources import WorkspaceSources
from speckit_memory.memory.store.file.connection import Database, Transaction
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.reading.reader import KnownFile
from speckit_memory.memory.store.tables.memories import restorations
from speckit_memory.memory.store.tables.memories.former_keys import former_keys
from speckit_memory.memory.store.tables.memories.restorations import NO_FILE
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.writing import writer
from speckit_memory.memory.store.writing.moving import TO_BE_READ
from speckit_memory.pipeline.process.cancellation import require_wanted

SAVED_ALL_THE_SAME = frozenset({"E094", "E095", "E099"}) | REMARKS
"""Codes of problems that do not prevent saving a document: it was cut, its time is unknown, a line of its front matter
is not understood, or something was left out or mended on intake."""


class Indexer:
    """Writes documents into a store. Without an embedder, memories are stored with their embedding pending.

    Keys of files are relative to `root`. An indexer is not thread-safe; several processes may index the same store.
    """

    def __init__(
        self,
        database: Database,
        embedder: Embedder | None,
        analyser: Analyser,
        root: Path,
        sizes: ChunkSizes = DEFAULT_SIZES,
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._analyser = analyser
        self._root = root
        self._sizes = sizes
        self._sources = WorkspaceSources(database, root)

    def index(
        self,
        paths: Sequence[Path],
        *,
        force: bool = False,
        dry_run: bool = False,
        now: float,
        progress: OnProgress | None = None,
        processes: int = 0,
        leave: Collection[str] = (),
    ) -> IndexReport:
        """Bring the store up to date with files and folders: new, changed, vanished and returned files.

        A memory whose file is missing becomes absent: no search finds it, but all of it is kept until the file is back.
        Unreadable files are reported, and the rest is indexed.

        Args:
            paths: Files and folders to index, remembered as sources. Earlier sources below them are indexed as well.
            force: Read every file again.
            dry_run: Report what would be done and write nothing.
            now: The time, in epoch seconds.
            progress: Called after each batch.
            processes: The maximum number of helper processes that read and analyse files; see `reader_processes`.
            leave: Document types (`classify.document_type`) to skip; their files are not read, their memories stay.
        """
        report = IndexReport(dry_run=dry_run, absent_days=load_workspace_config(self._root).absent_days)
        connection = self._database.reader()
        known = reader.known_files(connection)
        patterns = self._patterns()
        overruling = self._sources.overruling(connection)
        found = scan(paths, self._root, patterns, overruling, self._database.is_closed)
        found.covered = [
            key for key in found.covered if not secrets.secret_kind_of_name(key)
        ]  # reading the file reports them
        rules = self._rules()
        force = force or get_meta(connection, ANALYSER) not in (None, self._analyser.version)
        force = force or (bool(known) and get_meta(connection, INTAKE) != intake_version(rules))
        elsewhere = self._sources.elsewhere(connection)
        decision = decide(found, known, force, elsewhere)
        returned = ReappearedFiles(found, self._root, patterns, overruling)  # missing only during the scan
        if back := returned.among(decision.gone):
            found.hidden += back
            decision = decide(found, known, force, elsewhere)
        moved = found_moves(connection, known, decision, self._root, elsewhere)  # applied before other changes
        if moved and not dry_run:
            moved = follow(self._database, known, moved, now)
        if moved:
            known = follow_moves(known, moved) if dry_run else reader.known_files(connection)
            decision = decide(found, known, force, elsewhere)
        decision = leave_alone(decision, found, leave)  # after the moves, which also concern excluded types
        aliases.links(self._database, found.links, force, report)
        report.failures += found.problems
        report.problems += found.remarks
        report.ignored |= found.ignored
        report.overruled |= found.overruled
        told = {place for key in (*decision.gone, *back, *(m.old for m in moved)) for place in with_folders(key)}
        report.failures += [missing_path(key, self._root, known) for key in found.missing if key not in told]
        report.unchanged += decision.skip
        gone = set(decision.gone)
        hashes = {key: each.content_hash for key, each in known.items() if key not in gone and not each.absent}
        new = [file.key for file in decision.read if file.key not in known]
        committed, unknown = commit_times(self._root, new)
        report.problems += unknown
        tasks = self._tasks(decision.read, known, restorations.removed_hashes(connection), force, committed)
        with process_sources(tasks, self._maker(rules), self._embedder, processes, report) as made:
            touched, without = self._run(made, hashes, known, report, now, progress, len(tasks))
        again = {*returned.among(decision.gone)}  # files may have returned during the run
        report.problems += returned.remarks()
        report.absent += [key for key in decision.gone if key not in again and known[key].restored != NO_FILE]
        report.absent += [key for key in without if key in known]
        if not dry_run:
            self._settle(report, found, known, touched, now)
            versions.note_analyser(self._database, self._analyser, known, report)
            versions.note_intake(self._database, rules, known, report)
            judging.compare(self._database, self._embedder, known, report, now)
        away = frozenset(key for key, stored in known.items() if stored.absent)
        if dry_run:
            report.vanished += [key for key in report.absent if key not in away]
        report.returned += [key for key in (*report.updated, *report.unchanged) if key in away]
        report.follow(moved)
        report.sources += self.sources()
        return report

    def sources(self) -> dict[str, bool]:
        """Return the sources by key ("" is the root), and whether each is only included because it was named."""
        return self._sources.known(self._database.reader())

    def forget(self, paths: Sequence[Path], *, dry_run: bool = False, now: float) -> IndexReport:
        """Forget the sources at and below these paths, with every memory that no other source holds; see `forget`."""
        return forget(self._database, self._sources, self._root, self._patterns(), paths, dry_run=dry_run, now=now)

    def index_documents(
        self, sources: Iterable[Source], *, now: float, progress: OnProgress | None = None, processes: int = 0
    ) -> IndexReport:
        """Write the documents of a dataset. Documents stored with equal content are skipped; nothing is deleted.

        Args:
            sources: The documents, consumed lazily.
            now: The time, in epoch seconds.
            progress: Called with the progress.
            processes: As in `index`.
        """
        report = IndexReport()
        known = reader.known_files(self._database.reader())
        hashes = {key: stored.content_hash for key, stored in known.items()}
        rules = self._rules()
        total = len(sources) if isinstance(sources, Sequence) else None
        with process_sources(sources, self._maker(rules), self._embedder, processes, report) as made:
            self._run(made, hashes, known, report, now, progress, total)
        with self._database.write() as txn:
            self._resolve(txn, report, now)
        interference.recount(self._database)
        versions.note_analyser(self._database, self._analyser, known, report)
        versions.note_intake(self._database, rules, known, report)
        return report

    def save_file(
        self, path: Path, *, now: float, force: bool = False, dry_run: bool = False, skip_preflight: bool = False
    ) -> SaveResult:
        """Store one file below the root if its front matter, anchors and links are valid and it is no duplicate.

        Args:
            path: The file, relative to the root or absolute.
            now: The time, in epoch seconds.
            force: Store the file despite problems.
            dry_run: Write nothing and return the problems.
            skip_preflight: Do not check anchors, duplicates and length.

        Raises:
            SpeckitError: All problems at once, nothing being written; E010 to E014 for a file that cannot be read.
                Links to unknown memories are only remarks; so are duplicates of a file that is stored already.
        """
        found = scan([path], self._root, self._patterns(), closed=self._database.is_closed)
        if found.problems or found.missing:
            raise SpeckitError.of(found.problems or [Problem("E010", f"{path}: there is no such file")])
        if found.covered != list(found.files):
            raise SpeckitError("E014", f"{path} is a folder; one file is saved at a time")
        (file,) = found.files.values()
        text, mtime_ns = file.read()
        source = Source(file.key, text, file=file.path, mtime_ns=mtime_ns)
        return self._save(source, now, force, dry_run, skip_preflight, found)

    def preview(
        self, key: str, text: str, *, now: float, force: bool = False, skip_preflight: bool = False
    ) -> SaveResult:
        """Return the result of a dry run of saving a text under a key; the file need not exist.

        Args:
            key: The path relative to the root.
            text: The content of the file.
            now: The time, in epoch seconds.
            force: As in `save_file`.
            skip_preflight: As in `save_file`.
        """
        return self._save(Source(key, text, file=self._root / key), now, force, True, skip_preflight, Scan())

    def _patterns(self) -> SourcePatterns:
        """Return the patterns, read again for every run because the file may be edited while a server runs."""
        return load_workspace_config(self._root).sources

    def _rules(self) -> SavingRules:
        """Return the saving rules, read again for every run like the patterns."""
        return load_workspace_config(self._root).saving

    def _maker(self, rules: SavingRules) -> SourceProcessor:
        return SourceProcessor(self._analyser, self._sizes, rules)

    def _save(
        self,
        source: Source,
        now: float,
        force: bool,
        dry_run: bool,
        skip_preflight: bool,
        scanned: Scan,
    ) -> SaveResult:
        connection = self._database.reader()
        known = reader.known_files(connection)
        rules = self._rules()
        made = self._maker(rules).of_source(source)
        if made.document is None:
            raise SpeckitError.of(made.failures or made.problems)
        document, problems, targets, intake = made.document, made.problems, made.targets, made.intake or Intake()
        if source.file:
            elsewhere = self._sources.elsewhere(connection)
            moved = saved_move(known, document.key, document.content_hash, self._root, elsewhere)
            if moved and not dry_run:
                follow(self._database, known, moved, now)
            known = follow_moves(known, moved) if dry_run else reader.known_files(connection)
        duplicates = () if skip_preflight else preflight.same_content(document, known)
        duplicated = preflight.duplicate(document, duplicates)
        remarks = [problem for problem in problems if problem.code in SAVED_ALL_THE_SAME]
        not_told = SAVED_ALL_THE_SAME | ({preflight.ANCHORS} if skip_preflight else set())
        problems = [problem for problem in problems if problem.code not in not_told]
        problems += preflight.quality(document.key, intake, rules)
        stored = known.get(document.key)
        if stored is None or stored.content_hash != document.content_hash:
            problems += duplicated
        else:
            remarks += duplicated
        there = known.keys() | former_keys(connection).keys() | {document.key}
        remarks += few(causal_links.unresolved(targets, there))
        tokens = 0 if skip_preflight else counted_tokens([document.body], self._embedder)[0]
        of_path = judging.of_path(document, known, duplicates, dry_run=dry_run)
        facts = (duplicates, tokens, len(document.chunks))
        if dry_run:
            number = stored.id if stored else None
            foreseen = of_path or judging.foreseen(connection, self._embedder, document, now)
            found = (*problems, *remarks)
            return SaveResult(document.key, number, "dry_run", found, *facts, False, foreseen, intake)
        if problems and not force:
            raise SpeckitError.of(problems)
        report = IndexReport()
        acting = of_path is None and rules.prediction_error == "act" and not force
        noted = (lambda txn, memory: unfinished_saves.note(txn, memory, now)) if acting else None
        batches = BatchWriter(self._database, self._embedder, now, report, noted)
        batches.begin(takeover=False)
        batches.add(document)  # in one transaction with the note, so that a crash cannot lose the verdict
        batches.finish()
        with self._database.write() as txn:
            self._sources.remember(txn, scanned)
            self._resolve(txn, report, now)
        interference.recount(self._database)
        if report.failures:
            raise SpeckitError.of(report.failures)
        versions.note_analyser(self._database, self._analyser, known, report)
        versions.note_intake(self._database, rules, known, report)
        outcome: Literal["created", "updated", "unchanged"] = (
            "created" if report.created else "updated" if report.updated else "unchanged"
        )
        memory = reader.get_memory(connection, document.key)
        pending = memory.embedding_status == "pending"
        verdict = of_path
        if verdict is None and outcome == "created":
            verdict = judging.judge_saved(self._database, document.body, memory.id, now, acting=acting)
        elif verdict is not None and outcome == "updated":
            verdict = judging.judge_updated(self._database, verdict, now)
        found = (*problems, *remarks, *report.problems)
        return SaveResult(document.key, memory.id, outcome, found, *facts, pending, verdict, intake)

    def _resolve(self, txn: Transaction, report: IndexReport, now: float) -> None:
        """Create the edges that documents declare, and report those beyond the limit of a memory."""
        report.links, told = resolve_and_tell(txn, now)
        report.problems += told

    def _tasks(
        self,
        files: Sequence[FoundFile],
        known: Mapping[str, KnownFile],
        removed: Mapping[str, str],
        force: bool,
        committed: Mapping[str, CommitTimes],
    ) -> list[SourceTask]:
        """Return the files to read, with the stored hash if unchanged content may be skipped. `force` skips none,
        except files that disagree with a restored checkpoint, which holds until they change."""
        tasks = []
        for file in files:
            stored = known.get(file.key)
            if stored is None:
                same = removed.get(file.key, "")
            elif not stored.restored and (metadata_file(file.path) or (stored.ctime_ns or 0) > file.ctime_ns):
                same = ""  # its metadata file may have changed or been deleted
            elif stored.restored or (not force and stored.mtime_ns not in (None, TO_BE_READ)):
                same = stored.content_hash
            else:
                same = ""
            tasks.append(SourceTask(file, stored is not None, same, committed.get(file.key)))
        return tasks

    def _run(
        self,
        made_ones: Iterable[ProcessedSource],
        hashes: dict[str, str],
        known: Mapping[str, KnownFile],
        report: IndexReport,
        now: float,
        progress: OnProgress | None,
        total: int | None,
    ) -> tuple[dict[int, int], list[str]]:
        """Write the processed documents. `hashes` are the content hashes that stay in the store, by key.

        Returns the modification times (ns) of files with unchanged content, by memory id, and the keys of files that
        are ignored because of their content.
        """
        batches = BatchWriter(self._database, self._embedder, now, report)
        if not report.dry_run:
            batches.begin(progress=progress)
        done, key, written = 0, "", set()
        targets: list[tuple[str, Where]] = []
        touched: dict[int, int] = {}
        without: list[str] = []
        for made in made_ones:
            require_wanted()
            report.failures += made.failures
            report.problems += made.problems
            if made.intake is not None:
                report.taken_in(made.intake)
            targets += made.targets
            if made.unchanged_since is not None:
                if made.key in known:
                    touched[known[made.key].id] = made.unchanged_since
                    report.unchanged.append(made.key)
                else:
                    report.ignored[made.key] = REMOVED
            if made.ignored:
                report.ignored[made.key] = made.ignored
                hashes.pop(made.key, None)
                without.append(made.key)
            document = made.document
            if document is None:
                continue
            hashes[document.key] = document.content_hash
            written.add(document.content_hash)
            done, key = done + 1, document.key
            if report.dry_run:
                report.count(document)
                (report.updated if key in known else report.created).append(key)
            elif batches.add(document, made) and progress:
                progress(IndexProgress(done, total, key))
            del made, document  # free them before the next one is read: both may be large
        if not report.dry_run:
            batches.finish(progress)
        if progress:
            progress(IndexProgress(done, total, key))
        report.problems += few(
            causal_links.unresolved(targets, hashes.keys() | former_keys(self._database.reader()).keys())
        )
        aliases.equal_contents(hashes, written, report)
        return touched, without

    def _settle(
        self, report: IndexReport, found: Scan, known: Mapping[str, KnownFile], touched: dict[int, int], now: float
    ) -> None:
        """Write the results that are known once all files are read: sources, file times and absent memories."""
        with self._database.write() as txn:
            self._sources.remember(txn, found)
            writer.touch_mtime(txn, touched)
            report.absent = still_stored(txn, report.absent, known)
            begun = frozenset(writer.put_aside(txn, [known[key].id for key in report.absent], now))
            report.vanished += [key for key in report.absent if known[key].id in begun]
            writer.take_up(txn, [known[key].id for key in report.unchanged if key in known])
            writer.note_ctimes(txn, _changed_ctimes(found, known, report))
            # Last: while a moved file is stored twice, the end of its key matches two memories.
            self._resolve(txn, report, now)
            aliases.remember(txn, found.links, found.covered)
        interference.recount(self._database)


def _changed_ctimes(found: Scan, known: Mapping[str, KnownFile], report: IndexReport) -> dict[str, int]:
    """Return the new ctimes (ns) of files that agree with the store, by key."""
    return {
        key: found.files[key].ctime_ns
        for key in (*report.created, *report.updated, *report.unchanged)
        if key in found.files and (key not in known or known[key].ctime_ns != found.files[key].ctime_ns)
    }
