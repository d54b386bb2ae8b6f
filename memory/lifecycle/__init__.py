"""How memories age: retrievability, states, interference. Functions over columns, and what stores their results."""
