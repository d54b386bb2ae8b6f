"""What answers depend on beside the question and the clock: who has that unchanged may give an answer again (T25)."""

from __future__ import annotations

from typing import NamedTuple


class Standing(NamedTuple):
    """One state of a store as one pipeline sees it. Of no meaning to another process, and never the same again once
    anything has changed."""

    store: str
    """The open store; another one when the file at its path is another one."""
    commits: int
    """Changes with whatever is committed to the store, by any process: memories, links, sessions, counted uses."""
    configuration: str
    """The settings and the pipeline in force."""
    amiss: tuple[str, ...]
    """What is said of files that are broken."""
