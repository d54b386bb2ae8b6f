"""Tables of what happens to memories: archived, promoted, judged, renamed."""
