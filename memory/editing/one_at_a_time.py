"""Serialises changes of documents: reading, writing and storing belong together in each change.

Without this, two concurrent edits of a memory could see each other's file before it is stored, and two deletions could
both claim its file (features T4, T8 and T9).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from speckit_memory.config.files.file_lock import locked
from speckit_memory.errors import SpeckitError

_NAME = "documents"
"""Suffix of the lock's name, after the name of the store."""
PATIENCE = 60.0
"""Seconds to wait for the lock. Deleting a large folder takes some of them."""


@contextmanager
def one_at_a_time(store: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Exclude all other edits, deletions and undeletions of documents of this store, in any thread and process.

    Not reentrant. On file systems without locks, changes go on without one. Raises E022 after `patience` seconds.
    """
    # Two paths to the same store must use the same lock.
    real = Path(os.path.realpath(store))
    with ExitStack() as held:
        try:
            held.enter_context(locked(real.with_name(f"{real.name}.{_NAME}"), patience))
        except TimeoutError as error:
            message = f"another change of the documents of {store} does not finish"
            raise SpeckitError("E022", message) from error
        except OSError:
            pass
        yield
