"""Writes documents in batches: vectors come from the cache or the model, then one transaction stores the batch.

A memory is written with all its rows or not at all, so a killed run loses at most its last batch, and the next run
finishes the work. If the model fails, memories are left pending; every later run tries those again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext

from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.memory.indexing import pending_vectors, spaces
from speckit_memory.memory.indexing.source_processing import ProcessedSource
from speckit_memory.memory.intake.index_report import IndexProgress, IndexReport, OnProgress
from speckit_memory.memory.models.embedders.protocol import Embedder, TokenModel
from speckit_memory.memory.models.embedders.static import StaticEmbedder
from speckit_memory.memory.models.passage_vectors import EmbeddedTexts, embed, embedding_text, known, title_repeats
from speckit_memory.memory.store.file.connection import Database, Transaction
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import embedding_cache, vectors
from speckit_memory.memory.store.tables.words import token_sets
from speckit_memory.memory.store.writing import writer
from speckit_memory.memory.store.writing.rows import DocumentEntry

BATCH_DOCUMENTS = 64
BATCH_CHARACTERS = 2_000_000
"""Upper bounds of one transaction, so that a kill loses little and other writers wait only briefly."""
LARGE_BATCH = 3_000_000
LARGE_PASSAGES = 3000
"""Characters and passages above which a batch is large; only a very long document makes one."""
TRIAL = "does the model work?"
CACHE_SECONDS = 90 * 86_400.0
"""Vectors not used for this long are evicted from the cache."""


class BatchWriter:
    """Writes the documents of one run and fills its report. `now` is in epoch seconds.

    `created` is called with the id of every new memory, within the transaction that stores it.
    """

    def __init__(
        self,
        database: Database,
        embedder: Embedder | None,
        now: float,
        report: IndexReport,
        created: Callable[[Transaction, int], None] | None = None,
    ) -> None:
        self._created = created
        self._database = database
        self._embedder = embedder
        self._now = now
        self._report = report
        self._model_id = ""
        self._made: list[ProcessedSource] = []
        self._characters = 0

    def begin(self, *, takeover: bool = True, progress: OnProgress | None = None) -> None:
        """Make the embedder's model the store's model, and report it if it was a different one.

        The old model's vectors serve until the new model has embedded everything; a run killed before that has changed
        nothing, and the next one resumes. Without `takeover` they stay, and new memories wait for their vectors.
        """
        if self._embedder is None:
            return
        try:
            self._model_id = self._embedder.model_id
            stored = get_meta(self._database.reader(), vectors.MODEL)
            if stored is None or (stored == self._model_id and self._same_tokens(self._embedder)):
                return
            change = f"vectors made by '{stored}', the configured model is '{self._model_id}'"
            if not takeover:
                raise SpeckitError("E003", f"the store holds {change}: this memory waits for its vectors")
            self._embedder.embed_query(TRIAL)
            self._take_over(self._embedder, stored, progress)
        except SpeckitError as error:
            self._give_up(error)
            return
        self._report.problems.append(
            Problem(
                "E003",
                f"the store held {change}: all memories are embedded again",
                "Vectors of two models are never mixed.",
                ("to go back, configure the other model and index again",),
            )
        )

    def add(self, document: Document, made: ProcessedSource | None = None) -> bool:
        """Add a document, with its precomputed parts in `made`; return True if that filled a batch and wrote it."""
        self._made.append(made or ProcessedSource(document.key, document))
        self._characters += len(document.body)
        if len(self._made) < BATCH_DOCUMENTS and self._characters < BATCH_CHARACTERS:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        """Write the documents added since the last batch. A document that cannot be stored is reported."""
        batch, self._made = self._made, []
        characters, self._characters = self._characters, 0
        documents = [made.document for made in batch if made.document is not None]
        large = characters > LARGE_BATCH or sum(len(document.chunks) for document in documents) > LARGE_PASSAGES
        if not documents:
            return
        # Vectors are computed before the transaction, which then only writes.
        embedded = self._known(batch) or self._embed(
            self._text("" if document.title == document.key else document.title, chunk.heading, chunk.text)
            for document in documents
            for chunk in document.chunks
        )
        report = self._report
        outcomes = {"created": report.created, "updated": report.updated, "unchanged": report.unchanged}
        with self._database.write() as txn, txn.with_small_cache() if large else nullcontext():
            if embedded:
                embedded.note(txn, self._model_id, self._now)
            entries = _entries(documents, embedded, [made.fingerprint for made in batch])
            for entry, put in zip(entries, writer.put_documents(txn, entries, self._now, self._model_id), strict=True):
                if isinstance(put, SpeckitError):
                    report.failures += put.problems
                elif isinstance(put, Exception):  # SQLite cannot hold a value of it
                    message = f"{entry.document.key}: it cannot be stored: {type(put).__name__}: {put}"
                    report.failures.append(Problem("E081", message, retryable=False))
                else:
                    outcomes[put.outcome].append(entry.document.key)
                    if put.outcome == "created" and self._created is not None:
                        self._created(txn, put.id)
                    if put.outcome != "unchanged":
                        report.count(entry.document)

    def finish(self, progress: OnProgress | None = None) -> None:
        """Write the last batch, complete pending embeddings and evict old cache entries."""
        self.flush()
        self._complete_pending(progress)
        with self._database.write() as txn:
            embedding_cache.evict(txn, self._now - CACHE_SECONDS)
        self._report.pending = reader.statistics(self._database.reader()).pending_embeddings

    def _take_over(self, embedder: Embedder, stored: str, progress: OnProgress | None) -> None:
        """Embed all passages with the new model, then replace the vectors in use."""
        if stored == embedder.model_id:  # only the token model differs
            with self._database.write() as txn:
                vectors.forget_all(txn)
            return
        built = spaces.build(self._database, embedder, self._now, progress)
        self._report.embedded += built.embedded
        self._report.cache_hits += built.cached
        tokens = spaces.token_model_of(embedder)
        spaces.change(self._database, built.stamp, title_repeats(embedder), tokens, self._now, chosen=False)

    def _same_tokens(self, embedder: Embedder) -> bool:
        """Whether the store has no tokens, or those of this embedder."""
        stored = get_meta(self._database.reader(), token_sets.MODEL)
        return stored is None or not isinstance(embedder, TokenModel) or stored == embedder.token_model_id

    def _text(self, title: str, heading: str, text: str) -> str:
        repeats = title_repeats(self._embedder) if self._embedder else 1
        return embedding_text(title, heading, text, repeats)

    def _complete_pending(self, progress: OnProgress | None) -> None:
        done, total = 0, pending_vectors.waiting(self._database.reader()) if self._embedder and progress else 0
        while self._embedder:
            try:
                found = pending_vectors.complete_batch(self._database, self._embedder)
            except SpeckitError as error:
                self._give_up(error)
                return
            if found is None:
                return
            self._counted(found.embedded)
            with self._database.write() as txn:
                done += pending_vectors.store(txn, self._now, found)
            if progress:
                progress(IndexProgress(done, max(done, total), found.last))

    def _known(self, batch: Sequence[ProcessedSource]) -> EmbeddedTexts | None:
        """Return the vectors of a batch if a worker process has computed them; else None."""
        passages = [made.passages for made in batch if made.passages is not None]
        if len(passages) < len(batch) or not isinstance(self._embedder, StaticEmbedder):
            return None
        embedded = known(self._embedder, passages)
        return self._counted(embedded)

    def _embed(self, texts: Iterable[str]) -> EmbeddedTexts | None:
        """Return the vectors of these texts; None without a model, and after its first failure."""
        if self._embedder is None:
            return None
        try:
            embedded = embed(self._database.reader(), self._embedder, texts)
        except SpeckitError as error:
            self._give_up(error)
            return None
        return self._counted(embedded)

    def _counted(self, embedded: EmbeddedTexts) -> EmbeddedTexts:
        self._report.embedded += len(embedded.computed)
        self._report.cache_hits += len(embedded.used)
        return embedded

    def _give_up(self, error: SpeckitError) -> None:
        self._report.problems += error.problems
        self._embedder = None


def _entries(
    documents: Sequence[Document], embedded: EmbeddedTexts | None, fingerprints: Sequence[bytes | None]
) -> list[DocumentEntry]:
    """Pair the documents with the vectors and tokens of their passages, which `embedded` holds in the same order."""
    entries, start = [], 0
    for document, digest in zip(documents, fingerprints, strict=True):
        end = start + len(document.chunks)
        rows = embedded.rows[start:end] if embedded else None
        tokens = embedded.tokens[start:end] if embedded and embedded.tokens else None
        entries.append(DocumentEntry(document, rows, tokens, digest))
        start = end
    return entries
