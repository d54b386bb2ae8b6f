"""Pipeline files: found, read, layered and merged."""
