"""The roles of components, their contracts and their registry."""
