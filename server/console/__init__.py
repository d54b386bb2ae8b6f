"""The terminal: output, tables, progress, failures."""
