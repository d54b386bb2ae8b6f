"""Measures what the console script runs: it leaves matrix products in one thread, before numpy is imported."""

from __future__ import annotations

import os

from speckit_memory.server.entry import SINGLE_THREADED

for name in SINGLE_THREADED:
    os.environ.setdefault(name, "false" if name.startswith("TOKENIZERS") else "1")
