"""Commands that present their results by hand."""
