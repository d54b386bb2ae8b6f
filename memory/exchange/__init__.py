"""Exports memories as files that people can read and edit, and imports them into a store (feature M14)."""
