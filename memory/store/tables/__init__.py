"""Reading and writing rows: one module per table or family of tables."""
