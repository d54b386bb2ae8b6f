"""A search: the pipeline is run and its plan reported."""
