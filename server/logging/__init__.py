"""The log of a server."""
