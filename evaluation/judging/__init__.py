"""Collects labels from people and commands, first where two pipelines disagree (feature E3, phase C)."""
