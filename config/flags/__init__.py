"""Feature flags: what they declare, the files they stand in, their states and limits."""
