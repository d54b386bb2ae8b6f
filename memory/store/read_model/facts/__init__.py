"""Facts about memories as columns: attributes, folders, sessions, triggers."""
