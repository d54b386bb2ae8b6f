"""Transfer of memories between stores: checkpoints, deletions, exports and imports (feature M14)."""
