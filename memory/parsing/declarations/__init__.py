"""What a document declares about itself: front matter, metadata, causal links."""
