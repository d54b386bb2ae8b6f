"""Arguments as people type them: names, keys, numbers, texts."""
