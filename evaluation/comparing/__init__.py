"""Pipelines side by side on judged queries: in depth, as a gate, and against a baseline."""
