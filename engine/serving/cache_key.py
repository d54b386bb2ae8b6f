"""The cache key of answers: while it is unchanged, an answer to the same question stays valid (T25)."""

from __future__ import annotations

from typing import NamedTuple


class StateToken(NamedTuple):
    """One state of a store as one pipeline sees it. Valid in this process alone; never reused after a change."""

    store: str
    """Identifies the opening of the store; changes when its file is replaced."""
    commits: int
    """Changes with every commit of any process: memories, links, sessions, usage counts."""
    configuration: str
    """Identifies the settings and the pipeline in force."""
    files: int
    """Changes with the warnings about broken files."""
