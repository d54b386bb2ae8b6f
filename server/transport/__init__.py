"""How requests arrive: stdio and HTTP."""
