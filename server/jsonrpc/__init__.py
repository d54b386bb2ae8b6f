"""JSON-RPC lines and messages."""
