"""Reading rows for display, in bulk, or by walks along the causal graph."""
