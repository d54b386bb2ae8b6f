"""Rare words with one typing error."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from speckit_memory.evaluation.made_queries.collection import Collection
from speckit_memory.evaluation.made_queries.kind import MadeQuery, in_turn, shuffle_items
from speckit_memory.evaluation.made_queries.words import rare_words

_FREQUENCIES = (1, 2, 3)
_LEAST_LETTERS = 6
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def typos(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """Words of 1, 2 or 3 documents, of at least six letters, with one letter inserted, omitted, replaced, or two
    swapped.

    The documents of the original word (metadata `word`) are relevant. The first letter stays. Neither the misspelt word
    nor its stem occurs in a document, and no other word of the documents is within one edit of it.
    """
    rare = rare_words(collection, _FREQUENCIES, _LEAST_LETTERS)
    return in_turn([_queries(collection, df, rare[df], random) for df in shuffle_items(rare, random)])


def _queries(
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
