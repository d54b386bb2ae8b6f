"""Variants beside the pipeline that is served, run after the reply (features P4, P10)."""
