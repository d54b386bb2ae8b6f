"""Documents are changed one after the other: what a change reads, writes and stores of them belongs together.

Two calls that edit the same memory would each find what the other one has written and not yet stored, and two that
delete it would each believe to have taken its file (features T4, T8 and T9).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from speckit_memory.config.files.file_lock import locked
from speckit_memory.errors import SpeckitError

_NAME = "documents"
"""What follows the name of the store in that of the lock."""
PATIENCE = 60.0
"""Seconds. The deletion of a large folder takes some of them."""


@contextmanager
def one_at_a_time(store: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Keeps out whoever else edits, deletes or undeletes documents of this store, in any thread and process.

    Not to be entered twice by one thread. Where a file system locks nothing, changes go on without. Raises E022 after
    `patience` seconds.
    """
    real = Path(os.path.realpath(store))
    with ExitStack() as held:
        try:
            held.enter_context(locked(real.with_name(f"{real.name}.{_NAME}"), patience))
        except TimeoutError as error:
            message = f"another change of documents of {store} does not come to an end"
            raise SpeckitError("E022", message) from error
        except OSError:
            pass
        yield
