"""How memories age and prove themselves: retrievability, states, interference, confidence, and what stores them."""
