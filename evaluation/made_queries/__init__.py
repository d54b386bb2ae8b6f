"""Makes queries of the kinds that people type from the documents themselves (feature E3, phase A).

Each query is judged by construction: it asks for something that these documents contain and no others do, so no person
has to read and judge. One module per kind; `kinds` lists them.
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
"""All kinds. Listed here so that reading them does not import the modules that make them."""
