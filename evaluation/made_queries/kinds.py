"""The table of the kinds of made queries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueryKind:
    """A kind of query, made by the function of its name in a `module` beside this one.

    `asks_for` says what a further query needs, to be read after "there is no further …".
    """

    module: str
    asks_for: str


KINDS = {
    "words": QueryKind("rare_words", "word that occurs in 1, 2, 3 or 5 documents, with no word of its stem in others"),
    "pairs": QueryKind("pairs", "two neighbouring words that occur in several documents each and in one together"),
    "surfaces": QueryKind(
        "pairs", "two neighbouring words that one document holds as written and others in other forms"
    ),
    "names": QueryKind("names", "capitalised name inside a sentence that 1 to 5 documents hold"),
    "identifiers": QueryKind(
        "identifiers", "identifier, path, version, option or reference that 1 to 5 documents hold"
    ),
    "phrases": QueryKind("phrases", "line with five words in a row that occur in one document only"),
    "stop_phrases": QueryKind(
        "phrases", "line with five words in a row, most of them stop words, of one document only"
    ),
    "typos": QueryKind(
        "rare_words", "word of six letters that occurs in 1 to 3 documents and can be misspelt unambiguously"
    ),
    "titles": QueryKind("passages", "title of two words that no other document's title holds"),
    "paragraphs": QueryKind("passages", "document with more than 80 words that no other document has"),
    "authors": QueryKind("declared", "author, owner, editor or decider whom 1 to 10 documents name"),
    "dates": QueryKind("declared", "creation day or month that 1 to 10 documents declare"),
    "latest": QueryKind("declared", "word in 2 to 20 titles, with one newest document by its declared date"),
    "status": QueryKind("declared", "word in up to 20 titles whose documents declare different statuses"),
    "traces": QueryKind("phrases", "line with five words in a row that occur in one document only"),
    "acronyms": QueryKind("names", "acronym that a document defines, and that 1 to 10 documents hold or spell out"),
    "negations": QueryKind("rare_words", "word in 3 to 8 documents, some of which hold another word of that frequency"),
    "paths": QueryKind("identifiers", "document whose key is a path with a name of letters"),
    "versions": QueryKind("identifiers", "version inside a URL that 1 to 5 documents hold"),
}
"""The kinds by name. Their modules are imported when queries are made: reading the table takes no time."""
