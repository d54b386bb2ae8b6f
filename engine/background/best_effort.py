"""What happens beside an answer and must not change it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

LOGGER = logging.getLogger(__name__)


@contextmanager
def harmless(what: str) -> Iterator[None]:
    """Whatever goes wrong inside is logged as `what` and reaches nobody: no answer, no thread, nobody who looks."""
    try:
        yield
    except Exception as error:
        LOGGER.warning("%s", what, exc_info=error)
