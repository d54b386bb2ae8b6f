"""Metrics, agreement of rankings, and tests that hold under peeking."""
