"""Recall within a token budget."""
