"""Files that people own or name: paths as they were given, opened once, written whole or not at all."""
