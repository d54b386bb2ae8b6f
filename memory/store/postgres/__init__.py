"""A store in PostgreSQL with pgvector, behind the interface of a connection to a SQLite file."""
