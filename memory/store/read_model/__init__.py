"""The state of the store that queries read, held in memory and brought up to date from the log of changes."""
