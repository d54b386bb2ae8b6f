"""Measurement: metrics, datasets, comparisons."""
