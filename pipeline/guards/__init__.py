"""Checks of what components return, and the seal of a ranking."""
