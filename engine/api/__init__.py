"""The facade `Memory` and the groups of operations it is made of."""
