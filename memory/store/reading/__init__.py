"""Rows as they are shown, loaded in bulk, or walked along the causal graph."""
