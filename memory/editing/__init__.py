"""Changes of documents that a call asks for: the file is the truth, so it is the file that is written."""
