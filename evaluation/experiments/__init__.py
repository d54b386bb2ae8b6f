"""Comparisons of pipelines on recorded queries, and what flags may be promoted by."""
