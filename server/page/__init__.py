"""HTML reports as a single page without network access or scripts: plots, template and style."""
