"""Queries of the kinds that people type, made from the documents themselves (feature E3, phase A).

Each is judged by how it was made: a query asks for something that is known to stand in these documents and in no
others, so that nobody has to read and judge. One module per kind; `kinds` is their table.
"""

KIND_NAMES = (
    "words",
    "pairs",
    "surfaces",
    "names",
    "identifiers",
    "phrases",
    "stop_phrases",
    "typos",
    "titles",
    "paragraphs",
    "authors",
    "dates",
    "latest",
    "status",
    "traces",
    "acronyms",
    "negations",
    "paths",
    "versions",
)
"""All kinds. Stated here, where it costs no import of what makes them."""
