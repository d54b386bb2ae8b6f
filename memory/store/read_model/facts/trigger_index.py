"""Finds the trigger phrases of all memories in texts (features C7, C9)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from unicodedata import category

import numpy as np

from speckit_memory.memory.store.read_model.facts.trigger_table import TriggerRow, TriggerTable
from speckit_memory.memory.store.tables.words.phrases import normalised_phrase
from speckit_memory.pipeline.ports import AUTHORED, Column, Ids

# Kana, CJK ideographs and Hangul are written without spaces: every character may begin a word.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_PIECE = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|\W")

Entry = tuple[int, str, float, float | None]


class TriggerIndex:
    """Normalised phrases and the memories that they trigger. Implements `pipeline.ports.Triggers`. Immutable."""

    __slots__ = ("_base", "_gone", "_phrases", "_starts", "_triggers")

    def __init__(self, entries: Iterable[Entry] = (), base: TriggerTable | None = None) -> None:
        """Take (memory id, normalised phrase, weight, expiry time or None) of each trigger, in addition to a table."""
        self._base = base
        # Memories whose triggers in the table are no longer valid.
        self._gone: frozenset[int] = frozenset()
        self._triggers: dict[str, list[TriggerRow]] = {}
        self._phrases: dict[int, list[str]] = {}
        self._starts: dict[str, set[str]] = {}
        self._add(entries)

    def replaced(self, outdated: Iterable[int], entries: Iterable[Entry]) -> TriggerIndex:
        """A copy without the triggers of the outdated memories and with `entries`, which belong to such memories."""
        gone, added = set(outdated), list(entries)
        phrases = {phrase for memory in gone for phrase in self._phrases.get(memory, ())}
        twin = TriggerIndex(base=self._base)
        if self._base is not None:
            twin._gone = self._gone | gone
        twin._triggers = self._triggers.copy()
        twin._starts = self._starts.copy()
        twin._phrases = self._phrases.copy()
        for memory in gone:
            twin._phrases.pop(memory, None)
        # `_add` changes lists and sets in place: the affected ones are copied first.
        for phrase in phrases | {entry[1] for entry in added}:
            twin._triggers[phrase] = [t for t in self._triggers.get(phrase, ()) if t.memory not in gone]
            twin._starts[start_of(phrase)] = self._starts.get(start_of(phrase), set()).copy()
        for phrase in phrases:
            if not twin._triggers[phrase]:
                del twin._triggers[phrase]
                twin._starts[start_of(phrase)].discard(phrase)
        twin._add(added)
        return twin

    def exact(self, text: str) -> bool:
        """True when the text, case-folded and NFC-normalised, is a whole phrase that some document declares."""
        phrase = normalised_phrase(text)
        return any(
            trigger.weight >= AUTHORED for trigger in chain(self._triggers.get(phrase, ()), self._of_base(phrase))
        )

    def matches(self, text: str, now: float) -> tuple[Ids, Column]:
        """Every trigger phrase that occurs in the text between word boundaries: memory ids and weights.

        Rows ascend by memory, then by phrase. A phrase that a memory has twice counts once, with the larger weight; a
        phrase that expired before `now` (epoch seconds) does not count.
        """
        normalised = normalised_phrase(text)
        borders = _borders(normalised)
        beginning = {piece: self._beginning(piece) for piece in set(borders.values())}
        weights: dict[tuple[int, str], float] = {}
        # Only phrases that begin with the word at this position are compared.
        for position, piece in borders.items():
            for phrase in beginning[piece]:
                # a phrase has to end at a border as well
                if normalised.startswith(phrase, position) and position + len(phrase) in borders:
                    for memory, weight, expires_at in chain(self._triggers.get(phrase, ()), self._of_base(phrase)):
                        if expires_at is None or expires_at >= now:
                            weights[memory, phrase] = max(weight, weights.get((memory, phrase), 0.0))
        ranked = sorted(weights)
        return (
            np.array([memory for memory, _ in ranked], np.int64),
            np.array([weights[match] for match in ranked], np.float64),
        )

    def _beginning(self, piece: str) -> set[str]:
        """The phrases, here and in the table, that begin with this word or symbol."""
        found = set(self._starts.get(piece, ()))
        return found if self._base is None else found.union(self._base.beginning(piece))

    def _of_base(self, phrase: str) -> Iterator[TriggerRow]:
        """The triggers of this phrase in the table that are still valid."""
        found = () if self._base is None else self._base.triggers(phrase)
        return (trigger for trigger in found if trigger.memory not in self._gone)

    def _add(self, entries: Iterable[Entry]) -> None:
        for memory, phrase, weight, expires_at in entries:
            self._triggers.setdefault(phrase, []).append(TriggerRow(memory, weight, expires_at))
            self._phrases.setdefault(memory, []).append(phrase)
            self._starts.setdefault(start_of(phrase), set()).add(phrase)


def start_of(phrase: str) -> str:
    """The first word or symbol of a phrase."""
    found = _PIECE.match(phrase)
    return found[0] if found else ""


def _borders(text: str) -> dict[int, str]:
    """The start of every word or symbol, with that word or symbol, and the end of the text.

    A combining mark belongs to the word before it, and so do the letters after it.
    """
    borders: dict[int, str] = {}
    marked = False
    for found in _PIECE.finditer(text):
        mark = category(found[0][0])[0] == "M"
        # Otherwise this piece continues the word before it.
        if not found.start() or not (mark or (marked and found[0][0].isalnum())):
            borders[found.start()] = found[0]
        marked = mark
    borders[len(text)] = ""
    return borders
