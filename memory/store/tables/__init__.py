"""One table, or one family of tables, per module: how its rows are written and found."""
