"""The durable store: one SQLite file that holds every memory with its passages, words, vectors and edges."""
