"""Models that were fetched by name and lie on this machine (feature I6)."""
