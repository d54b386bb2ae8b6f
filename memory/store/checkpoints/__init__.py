"""States of a store that are kept in files of their own, and brought back (feature M14)."""
