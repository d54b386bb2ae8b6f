"""The table of the kinds of made queries."""

from __future__ import annotations

from speckit_memory.evaluation.made_queries.acronyms import acronyms
from speckit_memory.evaluation.made_queries.declared import authors, dates, latest, status
from speckit_memory.evaluation.made_queries.identifiers import identifiers, paths, versions
from speckit_memory.evaluation.made_queries.kind import Kind
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

KINDS: dict[str, Kind] = {
    "words": Kind(words, "word that occurs in 1, 2, 3 or 5 documents, with no word of its stem in others"),
    "pairs": Kind(pairs, "two neighbouring words that occur in several documents each and in one together"),
    "surfaces": Kind(surfaces, "two neighbouring words that one document holds as written and others in other forms"),
    "names": Kind(names, "capitalised name inside a sentence that 1 to 5 documents hold"),
    "identifiers": Kind(identifiers, "identifier, path, version, option or reference that 1 to 5 documents hold"),
    "phrases": Kind(phrases, "line with five words in a row that occur in one document only"),
    "stop_phrases": Kind(stop_phrases, "line with five words in a row, most of them stop words, of one document only"),
    "typos": Kind(typos, "word of six letters that occurs in 1 to 3 documents and can be misspelt unambiguously"),
    "titles": Kind(titles, "title of two words that no other document's title holds"),
    "paragraphs": Kind(paragraphs, "document with more than 80 words that no other document has"),
    "authors": Kind(authors, "author, owner, editor or decider whom 1 to 10 documents name"),
    "dates": Kind(dates, "creation day or month that 1 to 10 documents declare"),
    "latest": Kind(latest, "word in 2 to 20 titles, with one newest document by its declared date"),
    "status": Kind(status, "word in up to 20 titles whose documents declare different statuses"),
    "traces": Kind(traces, "line with five words in a row that occur in one document only"),
    "acronyms": Kind(acronyms, "acronym that a document defines, and that 1 to 10 documents hold or spell out"),
    "negations": Kind(negations, "word in 3 to 8 documents, some of which hold another word of that frequency"),
    "paths": Kind(paths, "document whose key is a path with a name of letters"),
    "versions": Kind(versions, "version inside a URL that 1 to 5 documents hold"),
}
"""The kinds by name, in the order of `KIND_NAMES`."""
