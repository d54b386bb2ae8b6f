"""What `init` writes for people, for agents and for the clients that start the server."""
