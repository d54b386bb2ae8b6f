"""Memories written out as files that people read and edit, and brought into a store again (feature M14)."""
