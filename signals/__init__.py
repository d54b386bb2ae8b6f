"""Signals: evidence added to the fused score, one signal per file."""
