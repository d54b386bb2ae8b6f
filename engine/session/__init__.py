"""An open store shared by threads, and reopened when its file was replaced."""
