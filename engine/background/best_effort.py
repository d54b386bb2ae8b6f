"""A context manager for side work that must not affect an answer."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

LOGGER = logging.getLogger(__name__)


@contextmanager
def harmless(what: str) -> Iterator[None]:
    """Logs any exception from the block as `what` and suppresses it."""
    try:
        yield
    except Exception as error:
        LOGGER.warning("%s", what, exc_info=error)
