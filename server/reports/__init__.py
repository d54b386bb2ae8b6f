"""Renders reports: for a terminal, as Markdown, and as a page without network access or scripts."""
