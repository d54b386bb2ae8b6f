"""From a pipeline file to a pipeline: bound, checked, built."""
