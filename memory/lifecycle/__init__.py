"""How memories age and gain or lose trust: retrievability, states, interference, confidence, and their records."""
