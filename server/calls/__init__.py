"""A tool call: read leniently, checked, answered."""
