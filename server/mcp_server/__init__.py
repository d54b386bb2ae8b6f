"""The MCP server and what it offers."""
