"""Stage 2: fusers, which turn the hits of all channels into one score."""
