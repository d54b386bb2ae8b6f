"""The tools of the MCP server, one per module; each module offers `build`."""
