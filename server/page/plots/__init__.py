"""The plots of a shadow report, one a module: what each draws, says in its caption, and lists in its table."""
