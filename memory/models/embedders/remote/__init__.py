"""Embedding models behind an HTTP interface, used only by who names one (feature I6)."""
