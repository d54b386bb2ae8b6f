"""A pipeline measured on a dataset, in a temporary store."""
