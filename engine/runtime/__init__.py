"""One open store with its models."""
