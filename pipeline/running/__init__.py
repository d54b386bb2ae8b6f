"""Runs a pipeline: gathers candidates, fuses, reranks, annotates, explains."""
