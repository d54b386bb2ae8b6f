"""Documents that are saved, listed and matched by path."""
