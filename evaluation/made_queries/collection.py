"""A set of documents, indexed by their words as written and by the tokens that the product searches; its sentences."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from unicodedata import normalize

from speckit_memory.evaluation.datasets.documents import DatasetDocument
from speckit_memory.memory.parsing.analysis import STOP_WORDS, Analyser
from speckit_memory.memory.parsing.declarations import front_matter
from speckit_memory.memory.parsing.declarations.metadata import MetadataField, head_of

_NO_PROSE = re.compile(
    r"^ {0,3}(?P<fence>```|~~~)(?s:.*?)(?:^ {0,3}(?P=fence)|\Z)"  # fenced code
    r"|^(?: {4}|\t).*$"  # indented code
    r"|``?[^`\n]+``?"
    r"|<[^<>\n]{1,200}>"
    r"|\]\([^()\n]*\)"  # the target of a Markdown link
    r"|\b(?:https?://|www\.)\S+",
    re.MULTILINE,
)

_PLAIN_RUN = re.compile(r"(?<![\w'’/\\@=<>.-])[^\W\d_]+(?: [^\W\d_]+)*(?![\w'’/\\@=<>(-]|\.\w)")


def prose_lines(text: str) -> tuple[str, ...]:
    """The non-empty lines, in order. Removed text ends a line, so that it does not join the words around it."""
    return tuple(line for line in _NO_PROSE.sub("\n", text).splitlines() if line.strip())


def plain_runs(line: str) -> Iterator[list[str]]:
    """The runs of plain words in a line: letters only, separated by everything else."""
    return (run.split(" ") for run in _PLAIN_RUN.findall(line))


Rows = tuple[int, ...]
"""Documents by their index in the collection, ascending."""

_WORD = re.compile(r"\w+(?:'\w+)*")
_NONE: Rows = ()


class Collection:
    """The documents that one query searches. Each index is built on first use and cached."""

    def __init__(self, documents: Iterable[DatasetDocument]) -> None:
        self.documents = tuple(documents)
        self._analyser = Analyser()

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The text of each document as a reader sees it: title, trigger phrases, body."""
        return tuple("\n".join((d.title, *d.triggers, d.text)) for d in self.documents)

    @cached_property
    def folded(self) -> tuple[str, ...]:
        """The texts, case folded."""
        return tuple(text.casefold() for text in self.texts)

    @cached_property
    def prose(self) -> tuple[tuple[str, ...], ...]:
        """The lines of each body that hold sentences, without code and URLs."""
        return tuple(prose_lines(document.text) for document in self.documents)

    @cached_property
    def fields(self) -> tuple[tuple[MetadataField, ...], ...]:
        """The metadata fields of each document, from front matter and the head of its text."""
        return tuple(_fields(document.text) for document in self.documents)

    @cached_property
    def worded(self) -> tuple[str, ...]:
        """The folded words of each text in order, with one space before, between and after them."""
        # Spaces at both ends, so that " word " finds whole words at the ends as well.
        return tuple(f" {' '.join(words(text))} " for text in self.texts)

    @cached_property
    def by_word(self) -> Mapping[str, Rows]:
        """The documents that contain each folded word."""
        return postings(text.split() for text in self.worded)

    @cached_property
    def by_stem(self) -> Mapping[str, Rows]:
        """The documents that contain each token of the product's analyser, in text, key or folder.

        It holds more than `by_word`: a searcher may accept a document with another inflection of a word, or with the
        word as part of an identifier.
        """
        return postings(
            self._analyser.tokens(f"{text}\n{document.key}\n{document.folder}")
            for text, document in zip(self.texts, self.documents, strict=True)
        )

    def tokens(self, text: str) -> tuple[str, ...]:
        """The tokens that the product searches for; stop words only if there are no others."""
        return self._analyser.tokens(text)

    def with_tokens(self, tokens: Iterable[str]) -> Rows:
        """The documents that hold all these tokens, anywhere."""
        return common(self.by_stem, tokens)

    def with_sequence(self, sequence: Sequence[str]) -> Rows:
        """The documents that hold these folded words in sequence, with anything but words between them."""
        wanted = f" {' '.join(sequence)} "
        # By the index first: the search for the sequence then reads few texts.
        return tuple(row for row in common(self.by_word, sequence) if wanted in self.worded[row])

    def unmistakable(self, word: str) -> Rows:
        """The documents of a folded word; empty when any other document holds a word of the same stem."""
        rows, tokens = self.by_word.get(word, _NONE), self.tokens(word)
        # Equal tuples of rows: no document holds the stem in another form.
        return rows if len(tokens) == 1 and self.by_stem.get(tokens[0]) == rows else _NONE


def _fields(text: str) -> tuple[MetadataField, ...]:
    front, _ = front_matter.parse(text, "")
    return (*front.fields, *head_of(text[front.body_start :]).fields)


def words(text: str) -> list[str]:
    """The folded words of a text; names with underscores are one word; "Guido's" is the word guido."""
    plain = (text if text.isascii() else normalize("NFKC", text).replace("’", "'")).casefold()
    return [word[:-2] if word.endswith("'s") else word for word in _WORD.findall(plain)]


def is_content(word: str) -> bool:
    """Whether a folded word is not one of the product's stop words."""
    return word.replace("'", "") not in STOP_WORDS


def postings(texts: Iterable[Iterable[str]]) -> Mapping[str, Rows]:
    """The rows of the texts that contain each term."""
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, terms in enumerate(texts):
        for term in set(terms):
            rows[term].append(row)
    # Rows ascend, as the texts are read in order.
    return {term: tuple(found) for term, found in rows.items()}


def common(of_term: Mapping[str, Rows], terms: Iterable[str]) -> Rows:
    """The rows that contain all these terms; empty without terms."""
    # intersect from the rarest term on
    found = sorted((of_term.get(term, _NONE) for term in set(terms)), key=len)
    return tuple(sorted(set(found[0]).intersection(*found[1:]))) if found else _NONE
