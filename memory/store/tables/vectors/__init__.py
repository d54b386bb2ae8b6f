"""Tables of vectors and the models that made them."""
