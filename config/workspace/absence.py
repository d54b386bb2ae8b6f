"""How long memories whose files are absent are kept (docs/lifecycle.md)."""

ABSENT_DAYS = 90.0
"""Days after which background work deletes such a memory, unless the workspace sets another number."""
MOST_DAYS = 1_000_000
ACCEPTED_DAYS = f"a number of days above 0 and below {MOST_DAYS:,}"
