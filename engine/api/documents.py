"""Writes, edits and reads memories as documents: the file is the source of truth, and is what changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Literal

from speckit_memory.config.files.paths import named_path, named_paths
from speckit_memory.config.workspace.formats import FORMATS, PLAIN
from speckit_memory.engine.api.graph import GraphService
from speckit_memory.engine.background.best_effort import harmless
from speckit_memory.engine.documents import new_documents
from speckit_memory.engine.documents.new_documents import resolve_links, settle_verdict
from speckit_memory.engine.recording import session_events
from speckit_memory.engine.recording.screening import screen_text, storable
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.search.reading import TextExcerpt, read
from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.engine.session.usage_events import noting_written
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.editing import document_file, front_matter_edit
from speckit_memory.memory.editing.one_at_a_time import one_at_a_time
from speckit_memory.memory.editing.sections import edit_section
from speckit_memory.memory.editing.update_values import check_values
from speckit_memory.memory.indexing import IndexReport, SaveResult
from speckit_memory.memory.intake.index_report import SavedLink
from speckit_memory.memory.intake.secrets import identifier
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import Link, MemoryRecord

Edit = Literal["append", "replace"]


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """A memory before and after an update of its declared attributes. `pending` says that vectors are missing."""

    before: MemoryRecord
    after: MemoryRecord
    pending: bool


@dataclass(eq=False)
class DocumentService:
    """The operations that write documents. Each writes a file of the workspace and indexes it."""

    session: StoreSession

    def save(
        self,
        path: str | Path,
        *,
        force: bool = False,
        dry_run: bool = False,
        skip_preflight: bool = False,
        defer_embedding: bool = False,
        session: str = "",
        supersedes: Iterable[int | str] = (),
        relates_to: Iterable[int | str] = (),
    ) -> SaveResult:
        """Saves one file after the pre-flight checks (feature I9).

        Args:
            path: The file.
            force: Save despite failed checks; the report still lists them.
            dry_run: Run the checks only.
            skip_preflight: Skip the checks of anchors, duplicates and length; other faults of the document still refuse
                it.
            defer_embedding: Store the memory without its vector. Words find it at once; a server's background work,
                `maintain` or an index run embeds it later.
            session: The session that saves the memory; it attends to it from then on.
            supersedes: Memories, by id or key, that this one replaces; linked as by `graph.link`.
            relates_to: Memories, by id or key, that this one is related to; linked as by `graph.link`.
        """
        file = named_path(path)
        links = self._links(file, supersedes, relates_to)

        def run(opened: OpenStore) -> SaveResult:
            indexer = opened.indexer_without_model if defer_embedding else opened.saver
            with noting_written(opened):
                saved = indexer.save_file(
                    file, force=force, dry_run=dry_run, skip_preflight=skip_preflight, now=time.time()
                )
            if session and saved.id is not None and not dry_run:
                with harmless("a save could not be recorded in its session"):
                    session_events.record_saved(opened.database, identifier(session), saved.id, time.time())
            return saved

        saved = self.session.write(run, create=not dry_run)
        self.session.upkeep.saved()
        return saved if dry_run else self._add_links(saved, links)

    def update(
        self,
        name: int | str,
        *,
        title: str | None = None,
        triggers: Sequence[str] | None = None,
        tier: str | None = None,
        weight: float | None = None,
        allow_partial: bool = False,
    ) -> UpdateResult:
        """Edits the front matter of a memory's document; the rest of the file is unchanged (feature T8).

        Args:
            name: The memory, by id or key.
            title: The new title.
            triggers: The new trigger phrases.
            tier: The new importance tier.
            weight: The new importance weight in [0, 1].
            allow_partial: If the model cannot embed the memory again, keep the change: words find the memory, and
                vectors follow. By default the file is restored.

        Raises:
            SpeckitError: E080 for an unknown memory; E030 to E032 for values; E100 if the file has changed since it was
                indexed; E101 if it cannot be edited; E022 if another change of documents does not end.
        """
        root: Path = self.session.root
        said, phrases = (storable(value, root) for value in (title, None if triggers is None else tuple(triggers)))
        values = check_values(said, phrases, tier, weight)
        with one_at_a_time(self.session.database.path):
            before = self.session.get(name)
            if PurePosixPath(before.key).suffix.lower() not in PLAIN:
                message = f"{before.key} is not Markdown: other programs would show front matter as part of its text"
                raise SpeckitError("E101", message)
            pending = self._rewritten(
                before,
                lambda text: front_matter_edit.edit_front_matter(text, values, before.key),
                allow_partial=allow_partial,
            ).pending
            return UpdateResult(before, self.session.get(before.key), pending)

    def write(
        self,
        content: str,
        *,
        title: str = "",
        folder: str | None = None,
        path: str = "",
        tier: str = "",
        triggers: Sequence[str] = (),
        force: bool = False,
        dry_run: bool = False,
        skip_preflight: bool = False,
        defer_embedding: bool = False,
        session: str = "",
        supersedes: Iterable[int | str] = (),
        relates_to: Iterable[int | str] = (),
    ) -> SaveResult:
        """Writes a text to a new Markdown file of the workspace and saves it (feature T4).

        An existing file is never overwritten; if the checks refuse the text, no file is left. A file that already holds
        this text and is no memory yet is saved.

        Args:
            content: The text.
            title: The title; also the source of the file name if `path` is not given.
            folder: The folder of the file; default: "memories".
            path: The file.
            tier: The importance tier to declare.
            triggers: The trigger phrases to declare.
            force: Save despite failed checks.
            dry_run: Return key and verdict without writing.
            skip_preflight: Skip the checks of anchors, duplicates and length.
            defer_embedding: Store the memory without its vector.
            session: The session that writes.
            supersedes: Memories, by id or key, that this one replaces. They are declared in the front matter; if the
                same text was written before, they are added to that file.
            relates_to: Memories, by id or key, that this one is related to; declared in the same way.

        Raises:
            SpeckitError: E101 if the file cannot be made, E014 for a path where nothing is indexed, and the errors of
                `save`.
        """
        links = self._links(path, supersedes, relates_to)
        draft, left_out = new_documents.draft_document(
            self.session.root, content, title, folder, path, tier, triggers, self.session.settings.is_closed
        )
        known = new_documents.written_before(self.session.root, draft, declared=not links)
        # a process that was killed between file and store leaves a file without a memory: it is saved, not made twice
        if known and (
            links or not self.session.read(lambda opened: reader.known_files(opened.database.reader(), known))
        ):
            return self.save(
                self.session.root / known,
                force=force,
                dry_run=dry_run,
                skip_preflight=skip_preflight,
                defer_embedding=defer_embedding,
                session=session,
                supersedes=supersedes,
                relates_to=relates_to,
            ).without(left_out)
        draft = replace(draft, text=new_documents.declare_links(draft.text, links))
        if dry_run:
            return self._previewed(draft.key, draft.text, force, skip_preflight).without(left_out)
        file = new_documents.create_file(self.session.root, draft)
        try:
            saved = self.save(
                file.path, force=force, skip_preflight=skip_preflight, defer_embedding=defer_embedding, session=session
            )
        except SpeckitError:
            new_documents.taken_back(file)
            raise
        settled = settle_verdict(saved, tuple(SavedLink(str(link.relation), link.target) for link in links))
        return settled.without(left_out)

    def edit(
        self,
        name: int | str,
        content: str,
        *,
        how: Edit = "append",
        section: str = "",
        force: bool = False,
        dry_run: bool = False,
        skip_preflight: bool = False,
        session: str = "",
        supersedes: Iterable[int | str] = (),
        relates_to: Iterable[int | str] = (),
    ) -> SaveResult:
        """Appends to the text of a memory, or replaces one section, in its file (feature T4).

        Args:
            name: The memory, by id or key.
            content: The text to add.
            how: "append" or "replace".
            section: The ANCHOR id or heading of the section; required for "replace".
            force: Save despite failed checks.
            dry_run: Return the verdict without writing.
            skip_preflight: Skip the checks of anchors, duplicates and length.
            session: The session that edits.
            supersedes: Memories, by id or key, that this one replaces; linked as by `graph.link`.
            relates_to: Memories, by id or key, that this one is related to; linked as by `graph.link`.

        Raises:
            SpeckitError: E104 for an unknown section, E031 for a replacement without one; E022, E100 and E101 as
                `update`.
        """
        if how == "replace" and not section:
            raise SpeckitError("E031", "to replace text, its section must be named", actions=("name the section",))
        root: Path = self.session.root
        before = self._editable(name)
        links = self._links(root / before.key, supersedes, relates_to)
        content, left_out = screen_text(content, root)
        if dry_run:
            old = document_file.open_document(root, before.key, before.content_hash)
            text = edit_section(old.text, before.key, how, section, content)
            return self._previewed(before.key, text, force, skip_preflight).without(left_out)
        with one_at_a_time(self.session.database.path):
            memory = self._editable(name)
            saved = self._rewritten(
                memory,
                lambda text: edit_section(text, memory.key, how, section, content),
                allow_partial=True,
                force=force,
                skip_preflight=skip_preflight,
                session=session,
            )
        return self._add_links(saved, links).without(left_out)

    def read(self, name: int | str, *, section: str = "", first_line: int = 1) -> TextExcerpt:
        """The stored text of a memory, by id or key: the whole text or one section, from a line on (feature A7).

        `section` is an ANCHOR id or heading; line numbers are those of the document. Raises E080, E104 for an unknown
        section and E032 for a line after the end.
        """
        return self.session.read(lambda opened: read(opened, name, section, first_line))

    def forget(self, paths: str | Path | Iterable[str | Path], *, dry_run: bool = False) -> IndexReport:
        """Forgets the sources at and below these paths, and every memory that no other source holds. Raises E014."""
        named = named_paths(paths)
        report = self.session.write(
            lambda opened: opened.indexer_without_model.forget(named, dry_run=dry_run, now=time.time())
        )
        if report.deleted and not dry_run:
            self.session.upkeep.forgotten()
        return report

    def sources(self) -> dict[str, bool]:
        """The indexed sources by key ("" is the root), and whether each would be excluded if it were not named."""
        return self.session.read(lambda opened: opened.indexer_without_model.sources())

    def _previewed(self, key: str, text: str, force: bool, skip_preflight: bool) -> SaveResult:
        return self.session.read(
            lambda opened: opened.indexer.preview(
                key, text, now=time.time(), force=force, skip_preflight=skip_preflight
            )
        )

    def _links(
        self, path: str | Path, supersedes: Iterable[int | str], relates_to: Iterable[int | str]
    ) -> tuple[Link, ...]:
        """The links that a save asks for. Raises E080 for unknown memories, and E030 for a link to the same file."""
        supersedes, relates_to = tuple(supersedes), tuple(relates_to)
        if not supersedes and not relates_to:
            return ()
        return resolve_links(self.session.get, self.session.root, path, supersedes, relates_to)

    def _add_links(self, saved: SaveResult, links: tuple[Link, ...]) -> SaveResult:
        """Adds the links of a saved document that do not exist yet; returns the save's report with all of them."""
        if not links:
            return saved
        graph = GraphService(self.session)
        edges = []
        for link in links:
            relation = str(link.relation)
            around = graph.lineage(saved.key, direction="outgoing", depth=1, relations=(relation,))
            if any(step.target == link.target and step.created_by in ("manual", "document") for step in around.steps):
                edges.append(SavedLink(relation, link.target))
                continue
            edge = graph.link(saved.key, relation, link.target, strength=link.strength, evidence=link.evidence)
            edges.append(SavedLink(relation, link.target, edge.only_stored))
        return settle_verdict(saved, tuple(edges))

    def _editable(self, name: int | str) -> MemoryRecord:
        memory = self.session.get(name)
        if PurePosixPath(memory.key).suffix.lower() in FORMATS["html"]:
            raise SpeckitError("E101", f"{memory.key} is HTML, which cannot be edited")
        return memory

    def _rewritten(
        self,
        memory: MemoryRecord,
        change: Callable[[str], str],
        *,
        allow_partial: bool,
        force: bool = True,
        skip_preflight: bool = False,
        session: str = "",
    ) -> SaveResult:
        """Changes the file of a memory and saves it; if that fails, restores the file."""
        root: Path = self.session.root
        stored = self.session.read(lambda opened: reader.known_files(opened.database.reader(), memory.key))
        if memory.key in stored and stored[memory.key].mtime_ns is None:
            raise SpeckitError("E101", f"{memory.key} did not come from a file")
        old = document_file.open_document(root, memory.key, memory.content_hash)
        new = old.replace(change(old.text))
        try:
            saved = self.save(root / memory.key, force=force, skip_preflight=skip_preflight, session=session)
            if saved.pending and not allow_partial:
                message = f"{memory.key} could not be embedded again; nothing was changed"
                raise SpeckitError("E081", message, actions=("try again", "allow a partial update"))
        except SpeckitError:
            new.replace(old.text)
            self.save(root / memory.key, force=True, defer_embedding=True)
            raise
        return saved
