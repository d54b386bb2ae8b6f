"""Models of text: embedders, cross-encoders, token counts."""
