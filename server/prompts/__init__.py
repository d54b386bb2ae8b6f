"""MCP prompts: instructions for an agent together with stored memories."""
