"""Analyses the causal graph as a whole: its density, its central memories, and links that could be added."""
