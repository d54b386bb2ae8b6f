"""Two pipelines on one query: shadows, interleaving, where they diverge."""
