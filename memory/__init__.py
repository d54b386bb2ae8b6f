"""What is remembered: the store, the way documents become memories, and the life of a memory."""
