"""The files that `init` writes: configuration, the section for agents, and client settings."""
