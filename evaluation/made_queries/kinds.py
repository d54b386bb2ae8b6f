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
    "words": Kind(words, "word that stands in 1, 2, 3 or 5 documents, with no word of its stem in others"),
    "pairs": Kind(pairs, "two neighbouring words that are in several documents each and in one together"),
    "surfaces": Kind(surfaces, "two neighbouring words that one document holds as written and others in other forms"),
    "names": Kind(names, "capitalised name inside a sentence that 1 to 5 documents hold"),
    "identifiers": Kind(identifiers, "identifier, path, version, option or reference that 1 to 5 documents hold"),
    "phrases": Kind(phrases, "line with five words in a row that stand in one document only"),
    "stop_phrases": Kind(stop_phrases, "line with five words in a row, most of them stop words, of one document only"),
    "typos": Kind(typos, "word of six letters that stands in 1 to 3 documents and can be misspelt without doubt"),
    "titles": Kind(titles, "title of two words that no other document's title holds"),
    "paragraphs": Kind(paragraphs, "document with more than 80 words that are its own"),
    "authors": Kind(authors, "author, owner, editor or decider whom 1 to 10 documents name"),
    "dates": Kind(dates, "day or month that 1 to 10 documents say they are of"),
    "latest": Kind(latest, "word of 2 to 20 titles, one of whose documents says that it is the newest"),
    "status": Kind(status, "word of up to 20 titles whose documents say that they have different statuses"),
    "traces": Kind(traces, "line with five words in a row that stand in one document only"),
    "acronyms": Kind(acronyms, "acronym that a document defines, and that 1 to 10 documents hold or spell out"),
    "negations": Kind(negations, "word of 3 to 8 documents of which some hold another word of as many"),
    "paths": Kind(paths, "document whose key is a path with a name of letters"),
    "versions": Kind(versions, "version inside a URL that 1 to 5 documents hold"),
}
"""By name, in the order of `KIND_NAMES`."""
