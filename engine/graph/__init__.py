"""Links between memories: made, removed, reported, followed."""
