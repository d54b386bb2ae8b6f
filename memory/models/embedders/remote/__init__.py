"""Embedding models behind an HTTP interface, used only if the user names one (feature I6)."""
