"""Notifies clients of added, removed and changed memories."""
