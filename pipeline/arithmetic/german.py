"""German texts: recognises them, and adds stems by which their words are found in addition to their exact forms.

The analyser stems English and leaves German words nearly unchanged. The stems of German texts follow their tokens, with
a prefix that no other token has, so that texts in other languages and the word order are not affected.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import lru_cache
from unicodedata import normalize
from weakref import ref

import Stemmer

MARK = "de:"
"""Prefix of each stem, and a token by itself in each German text; the analyser never yields such a token for a word."""

STOP_WORDS = frozenset(
    """
    der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner
    ich mich mir du dich dir er sie es ihn ihm ihr ihre ihren ihrem ihrer wir uns unser unsere unseren unserem unserer
    man sich dieser diese dieses diesen diesem jeder jede jedes jeden jedem alle allen aller beide beiden
    wer wen wem wessen wie was wann wo warum wieso weshalb woher wohin wofür womit wodurch wozu
    welche welcher welches welchen welchem
    und oder aber denn sondern weil dass daß damit wenn falls ob obwohl als bis seit bevor nachdem während sobald
    in im ins an am ans auf aus bei beim mit nach von vom vor zu zum zur für über unter um durch gegen ohne zwischen
    ist sind war waren bin sei sein seine seinen seinem seiner wird werden wurde wurden worden hat haben hatte hatten
    kann können muss müssen soll sollen darf dürfen will wollen
    nicht nur auch noch schon sehr so also da dann dort hier nie immer mehr etwa
    """.split()  # noqa: SIM905 - a list of quoted words is harder to read
)

_NEIGHBOURING = "die so in an am was war will man also hat bin den dem des es er"
_NOT_ENGLISH = STOP_WORDS.difference(_NEIGHBOURING.split())
"""Stop words that identify German: English and languages related to German share the others."""
_ALONE = frozenset("und nicht auch wir ist sind wird werden für eine einen einem einer".split())  # noqa: SIM905
_ENGLISH = frozenset(
    """
    a the of and to is for with that this these are be been by from it its on or not if can we you they their at
    how what when where why who which has have do does did were will there than into
    """.split()  # noqa: SIM905
)
_LETTER = re.compile(r"[äöüß]", re.IGNORECASE)
_WORD = re.compile(r"(?<![\w/])(?:[^\W\d_][a-zß-ÿ]+|[A-ZÄÖÜ]{2,})(?![\w/])")
_SHORTEST_PART = 4
"""Shorter parts of compounds occur in too many other words: "rat" in "Apparat"."""
_SHORTEST_REST = 3
_LONGEST_WORD = 64
_ENDINGS = ("ig", "isch", "lich", "ung")
"""Derivational suffixes, which do not make a compound: "Kund" is not in "Kündigung" as "Bild" is in "Bildgröße"."""
_MOST_COMPOUNDS = 12
_kept: list[tuple[ref[AbstractSet[str]], str]] = []
_stemmer = Stemmer.Stemmer("german", 0)
_lock = threading.Lock()  # the stemmer is not thread safe


def is_german(text: str, otherwise: bool = False) -> bool:
    """Whether a text is German; `otherwise` is the answer for a text that is recognisably neither German nor English.

    A text is German if it has two different German function words, or one and an umlaut, or one that no other language
    has, unless it has as many English ones.
    """
    words = text.lower().split()
    said = _NOT_ENGLISH.intersection(words)
    if not said or (len(said) == 1 and said.isdisjoint(_ALONE) and not _LETTER.search(text)):
        return otherwise and _ENGLISH.isdisjoint(words)
    return sum(map(_NOT_ENGLISH.__contains__, words)) > sum(map(_ENGLISH.__contains__, words))


def words(text: str) -> list[str]:
    """The words of a text in lower case, including function words; no parts of identifiers, paths and numbers."""
    composed = text if text.isascii() else normalize("NFC", text)
    return [word.casefold() for word in _WORD.findall(composed) if len(word) <= _LONGEST_WORD]


def german_tokens(text: str) -> tuple[str, ...]:
    """The tokens added to a German text: the mark, then its stems in order, without function words."""
    return (MARK, *(stem(word) for word in words(text) if word not in STOP_WORDS))


@lru_cache(50_000)
def stem(word: str) -> str:
    """The marked stem of a word."""
    with _lock:
        return f"{MARK}{_stemmer.stemWord(word)}"


def stems_among(terms: AbstractSet[str]) -> str:
    """The marked stems among the terms of a store, one per line. The result for the last store is cached."""
    for of_terms, stems in _kept:
        # by identity: comparing two vocabularies would cost more than the search
        if of_terms() is terms:
            return stems
    found = "\n".join(["", *(term for term in terms if term.startswith(MARK)), ""])
    _kept[:] = [(ref(terms), found)]
    return found


def compounds(stem: str, known: str) -> list[str]:
    """The shortest of the known stems (one per line) that begin or end with this one."""
    part = stem.removeprefix(MARK)
    found = set()
    # str.find over one text is much faster than a loop over all stems
    place = known.find(part) if len(part) >= _SHORTEST_PART else -1
    while place >= 0:
        end = known.index("\n", place)
        one = known[known.rindex("\n", 0, place) + 1 : end]
        is_first = one.startswith(stem) and not one.startswith(_ENDINGS, len(stem))
        if len(one) - len(stem) >= _SHORTEST_REST and (is_first or one.endswith(part)):
            found.add(one)
        place = known.find(part, end)
    return sorted(found, key=lambda one: (len(one), one))[:_MOST_COMPOUNDS]


def parts(word: str, is_held: Callable[[str], bool]) -> list[str]:
    """The indexed stems of the two words of a compound; if only one is indexed, that one."""
    best: tuple[tuple[int, int], list[str]] = (0, 0), []
    for place in range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1):
        if not word.startswith(_ENDINGS, place):
            held = {part: one for part in (word[:place], word[place:]) if is_held(one := stem(part))}
            best = max(best, ((len(held), max(map(len, held), default=0)), list(held.values())))
    return best[1]
