"""Models that were fetched by name and are stored on this machine (feature I6)."""
