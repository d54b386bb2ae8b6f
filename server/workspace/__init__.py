"""The workspaces that a server serves."""
