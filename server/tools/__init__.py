"""The tools of the MCP server, one per module; `build` in each module returns the tool's function."""
