"""Writes segments, part by part."""
