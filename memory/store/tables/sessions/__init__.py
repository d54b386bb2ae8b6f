"""Tables of sessions and tasks."""
