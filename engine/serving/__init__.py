"""The pipeline in force, and how it follows its files."""
