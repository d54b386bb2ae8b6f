"""Threads, timers and values that are made at their first use."""
