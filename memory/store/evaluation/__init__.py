"""The evaluation database (feature E1): the answers of compared pipelines, in a separate file."""
