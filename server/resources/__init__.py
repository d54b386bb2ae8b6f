"""MCP resources: memories, the pipeline and the shadow report."""
