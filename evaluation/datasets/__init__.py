"""Collections of documents, queries and judgements; TREC files."""
