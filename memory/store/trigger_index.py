"""The trigger phrases of all memories, for asking whether a text is one (features C7, C9)."""

from __future__ import annotations

from collections.abc import Iterable

from memory.store.phrases import normalised_phrase


class TriggerIndex:
    """Normalised phrases and the memories that they trigger. Implements `pipeline.ports.Triggers`. Immutable."""

    __slots__ = ("_memories", "_phrases")

    def __init__(self, entries: Iterable[tuple[int, str]] = ()) -> None:
        """Take (memory id, normalised phrase) pairs."""
        self._memories: dict[str, frozenset[int]] = {}
        self._phrases: dict[int, tuple[str, ...]] = {}
        self._add(entries)

    def replaced(self, outdated: Iterable[int], entries: Iterable[tuple[int, str]]) -> TriggerIndex:
        """The index without the phrases of the outdated memories, and with these."""
        twin = TriggerIndex()
        twin._memories = self._memories.copy()
        twin._phrases = self._phrases.copy()
        for memory in outdated:
            for phrase in twin._phrases.pop(memory, ()):
                remaining = twin._memories.pop(phrase, frozenset()) - {memory}
                if remaining:
                    twin._memories[phrase] = remaining
        twin._add(entries)
        return twin

    def exact(self, text: str) -> bool:
        """True when the text, case-folded and NFC-normalised, is a whole trigger phrase of some memory."""
        return normalised_phrase(text) in self._memories

    def _add(self, entries: Iterable[tuple[int, str]]) -> None:
        for memory, phrase in entries:
            self._memories[phrase] = self._memories.get(phrase, frozenset()) | {memory}
            self._phrases[memory] = (*self._phrases.get(memory, ()), phrase)
