"""Links and lineages as text."""
