"""Tables of the store and their migrations."""
