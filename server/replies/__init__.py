"""Replies: cached, enveloped, sent with progress."""
