"""Reports on shadow pipelines as text, JSON and HTML."""
