"""Searches until a process answers from memory: what the first ones read from the file says nothing of later ones."""

from __future__ import annotations

import time
from collections.abc import Sequence

from speckit_memory.engine import Memory

MOST = 300
PAUSE_SECONDS = 0.2
"""In which a thread may build what later searches read."""


def settle(memory: Memory, queries: Sequence[str], at_least: int = 5) -> None:
    """Asks these queries in turn, until no word is looked up in the file any more, or `MOST` were asked.

    Pipelines that look up no words ask all of these.
    """
    for number in range(MOST):
        if number >= at_least and not memory.session.opened.read_model.current().lexicon.from_file:
            return
        memory.search(queries[number % len(queries)], deadline_ms=None)
        if number >= at_least:
            time.sleep(PAUSE_SECONDS)
