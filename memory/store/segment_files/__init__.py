"""Immutable files next to the store with the data that queries read: built once, opened by every process."""
