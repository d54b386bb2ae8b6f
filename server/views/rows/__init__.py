"""Memories, tasks and triggers as rows."""
