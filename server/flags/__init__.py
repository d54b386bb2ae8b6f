"""Flags as commands show and change them."""
