"""The sources that pipelines are measured on: datasets, and the user's own memories."""
