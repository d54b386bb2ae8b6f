"""Checkpoints: states of a store in separate files, and restoring them (feature M14)."""
