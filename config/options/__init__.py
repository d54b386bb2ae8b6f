"""The options of a workspace: what each accepts, and its default."""
