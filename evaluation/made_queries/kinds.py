"""The table of the kinds of made queries."""

from __future__ import annotations

from speckit_memory.evaluation.made_queries.acronyms import acronyms
from speckit_memory.evaluation.made_queries.declared import authors, dates, latest, status
from speckit_memory.evaluation.made_queries.identifiers import identifiers, paths, versions
from speckit_memory.evaluation.made_queries.kind import QueryKind
from speckit_memory.evaluation.made_queries.names import names
from speckit_memory.evaluation.made_queries.negations import negations
from speckit_memory.evaluation.made_queries.pairs import pairs
from speckit_memory.evaluation.made_queries.paragraphs import paragraphs
from speckit_memory.evaluation.made_queries.phrases import phrases, stop_phrases
from speckit_memory.evaluation.made_queries.surfaces import surfaces
from speckit_memory.evaluation.made_queries.titles import titles
from speckit_memory.evaluation.made_queries.traces import traces
from speckit_memory.evaluation.made_queries.typos import typos
from speckit_memory.evaluation.made_queries.words import words

KINDS: dict[str, QueryKind] = {
    "words": QueryKind(words, "word that occurs in 1, 2, 3 or 5 documents, with no word of its stem in others"),
    "pairs": QueryKind(pairs, "two neighbouring words that occur in several documents each and in one together"),
    "surfaces": QueryKind(
        surfaces, "two neighbouring words that one document holds as written and others in other forms"
    ),
    "names": QueryKind(names, "capitalised name inside a sentence that 1 to 5 documents hold"),
    "identifiers": QueryKind(identifiers, "identifier, path, version, option or reference that 1 to 5 documents hold"),
    "phrases": QueryKind(phrases, "line with five words in a row that occur in one document only"),
    "stop_phrases": QueryKind(
        stop_phrases, "line with five words in a row, most of them stop words, of one document only"
    ),
    "typos": QueryKind(typos, "word of six letters that occurs in 1 to 3 documents and can be misspelt unambiguously"),
    "titles": QueryKind(titles, "title of two words that no other document's title holds"),
    "paragraphs": QueryKind(paragraphs, "document with more than 80 words that no other document has"),
    "authors": QueryKind(authors, "author, owner, editor or decider whom 1 to 10 documents name"),
    "dates": QueryKind(dates, "creation day or month that 1 to 10 documents declare"),
    "latest": QueryKind(latest, "word in 2 to 20 titles, with one newest document by its declared date"),
    "status": QueryKind(status, "word in up to 20 titles whose documents declare different statuses"),
    "traces": QueryKind(traces, "line with five words in a row that occur in one document only"),
    "acronyms": QueryKind(acronyms, "acronym that a document defines, and that 1 to 10 documents hold or spell out"),
    "negations": QueryKind(negations, "word in 3 to 8 documents, some of which hold another word of that frequency"),
    "paths": QueryKind(paths, "document whose key is a path with a name of letters"),
    "versions": QueryKind(versions, "version inside a URL that 1 to 5 documents hold"),
}
"""The kinds by name, in the order of `KIND_NAMES`."""
