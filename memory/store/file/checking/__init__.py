"""Checks that a store file is consistent."""
