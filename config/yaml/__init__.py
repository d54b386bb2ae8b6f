"""YAML read as plain values with positions."""
