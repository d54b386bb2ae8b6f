"""The state of the store that the read model is of."""
