"""Reports of the pipelines that run beside the one that is served, for a terminal, a program and a page."""
