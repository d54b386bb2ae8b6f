"""Markdown: blocks, titles, anchors and passages."""
