"""Evaluation runs, their reports and their history."""
