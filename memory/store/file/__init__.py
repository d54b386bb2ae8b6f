"""The SQLite file: opening it, its schema, its connections and transactions, and whether it is still the same file."""
