"""What the product offers at the command line and over MCP, each operation declared once."""
