"""How memories age: retrievability, states, interference. Pure functions over columns."""
