"""Variants of the served pipeline, run after the reply (features P4, P10)."""
