"""Whether the store and its configuration are in order."""
