"""Stage 4: annotators, which filter and annotate and never touch a score or the order."""
