"""What is asked and what is answered: request, options, rows, excerpts, hints."""
