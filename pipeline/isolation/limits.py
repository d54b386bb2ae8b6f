"""Limits on messages, time and restarts of the process of isolated extensions."""

from __future__ import annotations

from speckit_memory.pipeline.isolation.wire import MEGABYTE

ANSWER_DOCUMENT = 8 * MEGABYTE
ANSWER_ARRAYS = 64 * MEGABYTE
"""Maximum size of an answer that the server accepts, usually some kilobytes; reading uses the server's memory."""
STORE_DOCUMENT = 256 * MEGABYTE
STORE_ARRAYS = 1024 * MEGABYTE
"""Maximum size of an answer of the store: enough for all words or all vectors of a large store."""

LONGEST_SECONDS = 10.0
"""Maximum time for one answer if the query has no deadline, or a later one."""
LEAST_SECONDS = 0.5
"""Minimum time granted for one answer, even near the deadline: steps that ignore the deadline run after it too."""
LOAD_SECONDS = 60.0
"""Maximum time to import an extension: some load models."""
ORPHAN_SECONDS = 1.0
"""The process ends by itself this long after the time limit of an answer, in case the server is gone."""

STARTS = 5
STARTS_WITHIN_SECONDS = 60.0
"""A process that keeps ending is restarted this many times within that period; then its steps are skipped."""

KEPT_COMPONENTS = 256
"""Maximum number of components kept in the process, least recently used first out."""
KEPT_PARAMETERS = 1024
"""Maximum number of validated parameter sets kept: tuning tries many."""

SHOWN_LINES = 100
LONGEST_LINE = 500
"""Maximum number and length of output lines per process that are passed on to the log."""

LOST = 70
"""Exit status of a process that lost the connection to the server, from sysexits.h."""
