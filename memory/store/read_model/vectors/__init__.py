"""Vectors in memory: matrices, inverted lists, tokens."""
