"""Which files are known ones at another place: renamed, moved, swapped (feature I8).

A memory follows its text, so that what was learned of it does. The rules and their reasons:
docs/decisions/0066-a-memory-follows-its-file.md.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

SAME_NAME = 0.5
"""Share of the text that a file of the same name must have kept to be the same; that of Git."""
OTHER_NAME = 0.7
"""The same for a file that has another name as well as another text."""
LEAD = 0.1
"""By so much the nearest must be nearer than the next: of two files that may be meant, neither is."""
LEAST_TEXT = 64
"""Characters; less is no evidence unless it is equal."""
MOST_HOLDERS = 50
"""A line that more of the vanished files have is that of a template and counts as different."""
LONGEST_COMPARED = 1_000_000
"""Characters of a text, and texts of each side, that are compared unless they are equal."""
MOST_COMPARED = 2_000

_BORDER = re.compile(r"\n|(?<=[.!?;])\s+")


@dataclass(frozen=True, slots=True)
class Move:
    """A memory whose file is at another place: keys before and after, the share of the text that stayed (0 to 1)."""

    old: str
    new: str
    similarity: float = 1.0

    def as_json(self) -> dict[str, object]:
        """The move as plain data."""
        return {"from": self.old, "to": self.new, "similarity": round(self.similarity, 3)}


def equal(left: Mapping[str, str], found: Mapping[str, str], kept: Iterable[str]) -> list[Move]:
    """The moves that equal texts tell.

    `left` are the hashes of texts by the keys at which they are no longer, `found` those of texts that were not at
    their keys before. A memory at one of the `kept` keys has a file there: it stays, unless another moves to its key,
    and nothing moves there unless it goes. Of several equal texts, those whose paths end alike belong together, then
    those first by key: which it is makes no difference to what was learned of the text.
    """
    olds, news = _by_hash(left), _by_hash(found)
    moves = [
        Move(old, new)
        for digest in olds.keys() & news.keys()
        for old, new in _paired(olds[digest], news[digest])
        if old != new
    ]
    held = frozenset(kept)
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


def similar(left: Mapping[str, str], found: Mapping[str, str]) -> list[Move]:
    """The moves of files that were edited as well: `left` and `found` are texts by key, as for `equal`.

    Compared are lines and sentences, each weighing as much as it is long. A pair is taken when each is the nearest to
    the other by `LEAD`, and near enough for their names.
    """
    pieces = {key: _pieces(text) for key, text in found.items() if len(text) <= LONGEST_COMPARED}
    before = {key: _pieces(text) for key, text in left.items() if len(text) <= LONGEST_COMPARED}
    weights = {id(each): _weight(each) for each in (*pieces.values(), *before.values())}
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
            scores[old, new] = weight / max(weights[id(each)], weights[id(before[old])])
    return list(_unmistakable(scores))


def _unmistakable(scores: Mapping[tuple[str, str], float]) -> Iterator[Move]:
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
            yield Move(old, new, score)


def _by_hash(hashes: Mapping[str, str]) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for key in sorted(hashes):
        found[hashes[key]].append(key)
    return found


def _paired(olds: Sequence[str], news: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of keys: those with the longest common end first, what is left in the order of keys."""
    old_left, new_left = dict.fromkeys(olds), dict.fromkeys(news)
    if len(olds) > 1 or len(news) > 1:
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
    """The last parts of a key; all of a shorter one, marked so that only equal ones match."""
    names = key.casefold().split("/")
    return "/".join(names[-parts:]) if len(names) >= parts else f"/{key}"


def _name(key: str) -> str:
    return key.rpartition("/")[2].casefold()


def _pieces(text: str) -> Counter[str]:
    return Counter(piece for part in _BORDER.split(text) if (piece := part.strip()))


def _weight(pieces: Counter[str]) -> int:
    return sum(len(piece) * times for piece, times in pieces.items())
