"""Matrix products in one thread, as the console script has them."""

from __future__ import annotations

import os

from speckit_memory.server.entry import SINGLE_THREADED


def one_thread() -> None:
    """Sets the environment, unless an operator has; to be called before numpy is imported."""
    for name in SINGLE_THREADED:
        os.environ.setdefault(name, "false" if name.startswith("TOKENIZERS") else "1")
