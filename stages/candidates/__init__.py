"""Stage 1: query understanding ahead of the channels."""
