"""Components of extensions in a process of their own: see docs/extending.md and decision record 0028."""
