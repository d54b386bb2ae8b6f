"""Documents that are no Markdown, read as Markdown, which everything behind understands (feature I1)."""
