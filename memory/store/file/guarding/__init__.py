"""A store file guarded against replacement, damage and stale readers."""
