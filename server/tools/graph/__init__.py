"""Tools for causal links."""
