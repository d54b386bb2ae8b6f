"""The doors: the command line and the MCP server."""
