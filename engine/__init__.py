"""The assembled product and its Python API."""
