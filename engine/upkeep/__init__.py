"""Maintenance: what is due, and the thread that does it."""
