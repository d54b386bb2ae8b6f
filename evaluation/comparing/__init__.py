"""Compares pipelines on judged queries: in depth, as a gate, and against a baseline."""
