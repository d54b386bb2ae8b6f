"""Steps of the four stages, one per file."""
