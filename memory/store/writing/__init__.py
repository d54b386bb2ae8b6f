"""What changes several tables at once: a memory with all its rows, the edges that links become, near duplicates."""
