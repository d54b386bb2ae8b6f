"""Safe access to files that users name or own: exact paths, opened once, written atomically."""
