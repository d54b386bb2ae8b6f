"""The plots of a shadow report, one per module: drawing, caption and table."""
