"""Words in memory: lexicon, postings, full-text index."""
