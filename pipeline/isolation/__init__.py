"""Runs components of extensions in a separate process: see docs/extending.md and decision record 0028."""
