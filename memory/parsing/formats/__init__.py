"""Converts documents in other formats to Markdown, the only format that the later steps read (feature I1)."""
