"""Queries, answers and their use, recorded for evaluation."""
