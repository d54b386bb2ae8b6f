"""Edits documents on request: files are the source of truth, so the file is changed."""
