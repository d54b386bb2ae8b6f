"""How long a memory is kept whose file is not there (docs/lifecycle.md)."""

ABSENT_DAYS = 90.0
"""Days after which background work deletes it, unless a workspace says otherwise."""
MOST_DAYS = 1_000_000
ACCEPTED_DAYS = f"a number of days above 0 and below {MOST_DAYS:,}"
