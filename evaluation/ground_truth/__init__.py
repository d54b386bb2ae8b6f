"""What pipelines are measured on: datasets, and what somebody has remembered."""
