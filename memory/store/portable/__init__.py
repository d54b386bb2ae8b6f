"""Records of memories as plain values that refer to memories by key, for exchange between stores (feature M14)."""
