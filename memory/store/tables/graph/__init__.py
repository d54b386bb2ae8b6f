"""Tables of edges and entities."""
