"""The evaluation database (feature E1): what pipelines answered beside one another, in a file of its own."""
