"""Reads the files that operators edit: pipelines, presets, flags, settings. Imports nothing but errors."""
