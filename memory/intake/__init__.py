"""A text on its way in: secrets, quality, duplicates and contradictions."""
