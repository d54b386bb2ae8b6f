"""Tables of words: full text, phrases, token counts."""
