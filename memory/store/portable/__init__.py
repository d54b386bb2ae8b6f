"""What is known of memories as plain values that name them by their keys, whatever store they go to (feature M14)."""
