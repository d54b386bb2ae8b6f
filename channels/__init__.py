"""Candidate sources: one channel per file."""
