"""Saves one file and records it; the services that change documents end with this."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from speckit_memory.engine.background.best_effort import harmless
from speckit_memory.engine.recording import session_events
from speckit_memory.engine.session.usage_events import noting_written
from speckit_memory.memory.intake.secrets import identifier

if TYPE_CHECKING:
    from speckit_memory.engine.runtime.open_store import OpenStore
    from speckit_memory.engine.session.store_session import StoreSession
    from speckit_memory.memory.indexing import SaveResult


def save_file(
    store: StoreSession,
    file: Path,
    *,
    force: bool = False,
    dry_run: bool = False,
    skip_preflight: bool = False,
    defer_embedding: bool = False,
    session: str = "",
) -> SaveResult:
    """Saves one file after the pre-flight checks; see `DocumentService.save` for the arguments.

    Args:
        store: The store.
        file: The file.
        force: Save despite failed checks.
        dry_run: Run the checks only.
        skip_preflight: Skip the checks of anchors, duplicates and length.
        defer_embedding: Store the memory without its vector.
        session: The session that saves; "" for none.
    """

    def save(opened: OpenStore) -> SaveResult:
        indexer = opened.indexer_without_model if defer_embedding else opened.saver
        with noting_written(opened):
            saved = indexer.save_file(
                file, force=force, dry_run=dry_run, skip_preflight=skip_preflight, now=time.time()
            )
        if session and saved.id is not None and not dry_run:
            with harmless("a save could not be recorded in its session"):
                session_events.record_saved(opened.database, identifier(session), saved.id, time.time())
        return saved

    saved = store.write(save, create=not dry_run)
    store.upkeep.saved()
    return saved
