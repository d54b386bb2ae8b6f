"""Detects known files at another place: renamed, moved or swapped (feature I8).

A memory follows its text and so keeps its learned state. The rules and their reasons:
docs/decisions/0066-a-memory-follows-its-file.md.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

SAME_NAME = 0.5
"""Minimum similarity of an edited file with the same name; Git uses the same threshold."""
OTHER_NAME = 0.7
"""Minimum similarity of an edited file with a different name."""
LEAD = 0.1
"""Margin by which the best match must exceed the second; of two close candidates, neither is taken."""
LEAST_TEXT = 64
"""Characters; a shorter text only matches an equal one."""
MOST_HOLDERS = 50
"""A line in more of the vanished files than this belongs to a template and is not compared."""
LONGEST_COMPARED = 1_000_000
"""Characters of a text, and (`MOST_COMPARED`) texts per side, up to which edited texts are compared."""
MOST_COMPARED = 2_000

_BORDER = re.compile(r"\n|(?<=[.!?;])\s+")


@dataclass(frozen=True, slots=True)
class FileMove:
    """A memory whose file has moved: its keys before and after, and the similarity of the texts (0 to 1)."""

    old: str
    new: str
    similarity: float = 1.0

    def as_json(self) -> dict[str, object]:
        """Return the move as plain data."""
        return {"from": self.old, "to": self.new, "similarity": round(self.similarity, 3)}


def equal(left: Mapping[str, str], found: Mapping[str, str], kept: Iterable[str]) -> list[FileMove]:
    """Return the moves found by equal texts.

    `left` maps keys to the hashes of texts that are no longer there, `found` keys to the hashes of texts that are new
    there. A memory at one of the `kept` keys has a file there: it stays unless another moves to its key, and nothing
    moves there unless it leaves. Among equal texts, paths with the longest common end are paired first, then keys in
    order: the choice makes no difference to the learned state.
    """
    olds, news = _by_hash(left), _by_hash(found)
    moves = [
        FileMove(old, new)
        for digest in olds.keys() & news.keys()
        for old, new in _paired(olds[digest], news[digest])
        if old != new
    ]
    held = frozenset(kept)
    # Fixed point: dropping an impossible move can make another one impossible.
    while True:
        going, coming = {move.old for move in moves}, {move.new for move in moves}
        possible = [
            move
            for move in moves
            if (move.new in going or move.new not in held) and (move.old in coming or move.old not in held)
        ]
        if len(possible) == len(moves):
            return sorted(moves, key=lambda move: move.new)
        moves = possible


def similar(left: Mapping[str, str], found: Mapping[str, str]) -> list[FileMove]:
    """Return the moves of files that were also edited: `left` and `found` map keys to texts, as in `equal`.

    Lines and sentences are compared, weighted by length. A pair is a move if each is the best match of the other by
    `LEAD`, and their similarity reaches the threshold for their names.
    """
    pieces = {key: _pieces(text) for key, text in found.items() if len(text) <= LONGEST_COMPARED}
    before = {key: _pieces(text) for key, text in left.items() if len(text) <= LONGEST_COMPARED}
    weights = {id(each): _weight(each) for each in (*pieces.values(), *before.values())}
    # Inverted index from a line to the vanished files with it: only pairs with a common line are compared.
    holders: defaultdict[str, list[str]] = defaultdict(list)
    for key, each in before.items():
        if weights[id(each)] >= LEAST_TEXT:
            for piece in each:
                holders[piece].append(key)
    scores: dict[tuple[str, str], float] = {}
    for new, each in pieces.items():
        shared: Counter[str] = Counter()
        for piece, times in each.items():
            if len(holders.get(piece, ())) <= MOST_HOLDERS:
                for old in holders.get(piece, ()):
                    shared[old] += len(piece) * min(times, before[old][piece])
        for old, weight in shared.items():
            # similarity = common characters / characters of the longer text, both counted in stripped lines
            scores[old, new] = weight / max(weights[id(each)], weights[id(before[old])])
    return list(_unmistakable(scores))


def _unmistakable(scores: Mapping[tuple[str, str], float]) -> Iterator[FileMove]:
    # Scores by side: "<key" for a vanished file, ">key" for a new one, so that equal keys do not collide.
    best: defaultdict[str, list[float]] = defaultdict(list)
    for (old, new), score in scores.items():
        best[f"<{old}"].append(score)
        best[f">{new}"].append(score)
    ranked = {side: sorted(each, reverse=True) for side, each in best.items()}
    for (old, new), score in sorted(scores.items()):
        enough = score >= (SAME_NAME if _name(old) == _name(new) else OTHER_NAME)
        if enough and all(
            each[0] == score and (len(each) == 1 or score - each[1] >= LEAD)
            for each in (ranked[f"<{old}"], ranked[f">{new}"])
        ):
            yield FileMove(old, new, score)


def _by_hash(hashes: Mapping[str, str]) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for key in sorted(hashes):
        found[hashes[key]].append(key)
    return found


def _paired(olds: Sequence[str], news: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of keys: those with the longest common end first, the rest in key order."""
    old_left, new_left = dict.fromkeys(olds), dict.fromkeys(news)
    if len(olds) > 1 or len(news) > 1:
        # From the longest possible common end of paths down to the file name alone.
        for parts in range(max(key.count("/") + 1 for key in (*olds, *news)), 0, -1):
            ends: defaultdict[str, list[str]] = defaultdict(list)
            for key in old_left:
                ends[_end(key, parts)].append(key)
            for new in list(new_left):
                if waiting := ends.get(_end(new, parts)):
                    old = waiting.pop(0)
                    del old_left[old], new_left[new]
                    yield old, new
    yield from zip(old_left, new_left, strict=False)


def _end(key: str, parts: int) -> str:
    """Return the last parts of a key; a shorter key whole, marked so that only an equal one matches."""
    names = key.casefold().split("/")
    return "/".join(names[-parts:]) if len(names) >= parts else f"/{key}"


def _name(key: str) -> str:
    return key.rpartition("/")[2].casefold()


def _pieces(text: str) -> Counter[str]:
    return Counter(piece for part in _BORDER.split(text) if (piece := part.strip()))


def _weight(pieces: Counter[str]) -> int:
    return sum(len(piece) * times for piece, times in pieces.items())
