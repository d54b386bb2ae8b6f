"""What the process of isolated extensions may take and send, and how long it may think."""

from __future__ import annotations

from speckit_memory.pipeline.isolation.wire import MEGABYTE

ANSWER_DOCUMENT = 8 * MEGABYTE
ANSWER_ARRAYS = 64 * MEGABYTE
"""What the server accepts of an answer: an honest one has some kilobytes, and reading takes memory of the server's."""
STORE_DOCUMENT = 256 * MEGABYTE
STORE_ARRAYS = 1024 * MEGABYTE
"""What the store may tell a component: all words or all vectors of a large store, but not without end."""

LONGEST_SECONDS = 10.0
"""How long one answer may take when the query has no deadline, or a later one."""
LEAST_SECONDS = 0.5
"""How long one answer may take whatever the deadline: steps that do not give way to it run after it too."""
LOAD_SECONDS = 60.0
"""How long an extension may take to be imported: some load models."""
ORPHAN_SECONDS = 1.0
"""So long after the server has given an answer up the process ends by itself, should the server be gone."""

STARTS = 5
STARTS_WITHIN_SECONDS = 60.0
"""A process that ends at every question is started again so often within that time; then its steps are left out."""

KEPT_COMPONENTS = 256
"""Components that the process keeps for the next question, the ones used last."""
KEPT_PARAMETERS = 1024
"""Validated parameters that it keeps: tuning tries many."""

SHOWN_LINES = 100
LONGEST_LINE = 500
"""Lines that an extension has written to its standard output or error and that reach the log, for each process."""

LOST = 70
"""The exit status of a process that can no longer hear or reach the server, as in sysexits.h."""
