"""Results as text and rows."""
