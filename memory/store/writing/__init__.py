"""Changes over several tables: memories with all their rows, edges from links, counts of near duplicates."""
