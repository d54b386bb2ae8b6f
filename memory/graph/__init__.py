"""What the causal graph as a whole says: how dense it is, what is central in it, and what could be connected."""
