"""Rare words, judged by the documents that hold them: alone, misspelt, or with another word excluded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import cycle
from random import Random

from speckit_memory.evaluation.made_queries.collection import Collection, Rows, is_content, plain_runs
from speckit_memory.evaluation.made_queries.query_maker import MadeQuery, in_turn, shuffle_items

FREQUENCIES = (1, 2, 3, 5)
"""Document frequencies of the words."""

_LEAST_LETTERS = 4


def words(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """Words that occur in exactly 1, 2, 3 or 5 documents, in equal numbers; all these documents are relevant.

    Words have at least four letters and nothing else, are not stop words, and occur in a sentence somewhere. No other
    document holds a word of the same stem, not even as part of a name.
    """
    rare = rare_words(collection, FREQUENCIES, _LEAST_LETTERS)
    return in_turn(_queries(shuffle_items(rare[df], random), df) for df in shuffle_items(rare, random))


def _queries(drawn: list[tuple[str, Rows]], df: int) -> Iterator[MadeQuery]:
    return (MadeQuery(word, rows, {"df": df}) for word, rows in drawn)


def rare_words(
    collection: Collection, frequencies: Iterable[int], least_letters: int
) -> Mapping[int, list[tuple[str, Rows]]]:
    """The unambiguous words by document frequency, with their documents."""
    rare: dict[int, list[tuple[str, Rows]]] = {df: [] for df in frequencies}
    for word in sorted(_plain_words(collection, least_letters)):
        rows = collection.unmistakable(word)
        if len(rows) in rare:
            rare[len(rows)].append((word, rows))
    return rare


def _plain_words(collection: Collection, least_letters: int) -> set[str]:
    """Every folded word that occurs in a sentence by itself and not in capitals."""
    written = {word for lines in collection.prose for line in lines for run in plain_runs(line) for word in run}
    folded = {word.casefold() for word in written if word[1:].islower()}
    return {word for word in folded if len(word) >= least_letters and is_content(word)}


_TYPO_FREQUENCIES = (1, 2, 3)
_TYPO_LETTERS = 6
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def typos(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """Words of 1, 2 or 3 documents, of at least six letters, with one letter inserted, omitted, replaced, or two
    swapped.

    The documents of the original word (metadata `word`) are relevant. The first letter stays. Neither the misspelt word
    nor its stem occurs in a document, and no other word of the documents is within one edit of it.
    """
    rare = rare_words(collection, _TYPO_FREQUENCIES, _TYPO_LETTERS)
    return in_turn([_misspelt(collection, df, rare[df], random) for df in shuffle_items(rare, random)])


def _misspelt(
    collection: Collection, df: int, words: list[tuple[str, tuple[int, ...]]], random: Random
) -> Iterator[MadeQuery]:
    for word, rows in shuffle_items(words, random):
        typed = _slip(word, random)
        if typed != word and _means_only(collection, typed, word):
            yield MadeQuery(typed, rows, {"df": df, "word": word})


def _slip(word: str, random: Random) -> str:
    """The word with one random edit after its first letter."""
    place = random.randrange(1, len(word))
    before, letter, after = word[:place], word[place], word[place + 1 :]
    edit = random.choice(("insert", "delete", "substitute", "transpose"))
    if edit == "insert":
        return before + random.choice([*_adjacent_keys(letter), letter]) + letter + after
    if edit == "delete":
        return before + after
    if edit == "substitute":
        return before + random.choice(_adjacent_keys(letter)) + after
    return before + after[:1] + letter + after[1:]


def _adjacent_keys(letter: str) -> list[str]:
    """The keys next to that of a letter; the whole alphabet for letters not on the keyboard rows."""
    for keys in _ROWS:
        if letter in keys:
            place = keys.index(letter)
            return [*keys[max(0, place - 1) : place], *keys[place + 1 : place + 2]]
    return list(_ALPHABET)


def _means_only(collection: Collection, typed: str, word: str) -> bool:
    """Whether the misspelt word is unknown to the documents and within one edit of this word alone."""
    if typed in collection.by_word or any(token in collection.by_stem for token in collection.tokens(typed)):
        return False
    meant = collection.tokens(word)
    # the letters of the word cover those outside the alphabet
    near = (other for other in _edits(typed, {*_ALPHABET, *word}) if other in collection.by_word)
    return all(collection.tokens(other) == meant for other in near)


def _edits(word: str, letters: set[str]) -> Iterator[str]:
    """Every word at an edit distance of one."""
    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        yield before + after[1:]
        yield before + after[1:2] + after[:1] + after[2:]
        for letter in letters:
            yield before + letter + after
            yield before + letter + after[1:]


_NEGATED_FREQUENCIES = (3, 4, 5, 6, 7, 8)
_NEGATED_LETTERS = 5
_NEGATIONS = ("{} but not {}", "{}, not {}", "{} except {}")


def negations(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """`caching but not redis`, `caching, not redis` or `caching except redis`.

    The first word occurs in three to eight documents, the second in some of these; the others are relevant. Both have
    at least five letters, and no document has the second one after "not", "without" or "except".
    """
    rare = rare_words(collection, _NEGATED_FREQUENCIES, _NEGATED_LETTERS)
    rows_of = {word: frozenset(rows) for words in rare.values() for word, rows in words}
    of_row: dict[int, list[str]] = {}
    for word in sorted(rows_of):
        for row in rows_of[word]:
            of_row.setdefault(row, []).append(word)
    forms = cycle(_NEGATIONS)

    def asking(word: str) -> Iterator[MadeQuery]:
        rows = rows_of[word]
        # words in some, not all, of these documents
        beside = {other for row in rows for other in of_row[row] if not rows_of[other] >= rows}
        for other in shuffle_items(sorted(beside), random):
            if not any(collection.with_sequence((sign, other)) for sign in ("not", "without", "except")):
                yield MadeQuery(next(forms).format(word, other), tuple(sorted(rows - rows_of[other])))

    return in_turn(map(asking, shuffle_items(sorted(rows_of), random)))
