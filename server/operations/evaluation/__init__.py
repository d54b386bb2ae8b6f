"""The commands `eval …`: measure pipelines on a dataset, and create datasets."""
