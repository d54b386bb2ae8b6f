"""A document cut into passages along its structure (feature I5).

Headings and ANCHOR tags are borders; fenced code and tables stay whole; a paragraph is cut only when it alone is too
long, then at ends of sentences. Small neighbouring sections are put together. The passages tile the text: joined, they
are the text again, blank borders aside. Time is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from speckit_memory.memory.parsing.limits import LONGEST_HEADING, LONGEST_PATH, MOST_BLOCKS, Limits, cut_at_word
from speckit_memory.memory.parsing.markdown.anchors import Section, borders, says_nothing
from speckit_memory.memory.parsing.markdown.markdown import Block, blocks
from speckit_memory.memory.store.records import Chunk


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """Lengths in characters. A document up to `whole_document` is one passage; others are packed up to `target`, in
    passages of at least `minimum` where the structure allows it. A paragraph over `maximum` and a code block or table
    over `whole_block` are cut."""

    whole_document: int = 2500
    target: int = 1600
    minimum: int = 400
    maximum: int = 2400
    whole_block: int = 6000

    def __post_init__(self) -> None:
        if not 0 < self.minimum <= self.target <= self.maximum <= self.whole_block or self.whole_document < 1:
            raise ValueError(f"chunk sizes must be positive and ascending: {self}")


DEFAULT_SIZES = ChunkSizes()


@dataclass(frozen=True, slots=True)
class _Span:
    """A stretch of the text in one section: offsets, path of headings above it, id of the innermost anchor."""

    start: int
    end: int
    path: tuple[str, ...]
    anchor: str

    @property
    def length(self) -> int:
        return self.end - self.start


_BLANK = re.compile(r"\s*(?<=\n)")  # up to the beginning of the next line that is not blank
_SENTENCE_ENDS = re.compile(r"\n|(?<=[.!?;])\s+|[。！？]")
_NEAR = 100
"""Characters before a place in which its last border is looked for first."""
_MARKUP = re.compile(r"`|\*\*|__")


def split(
    text: str,
    sections: Sequence[Section] = (),
    sizes: ChunkSizes = DEFAULT_SIZES,
    first_line: int = 1,
    limits: Limits | None = None,
) -> Iterator[Chunk]:
    """The passages of a text in order, not yet analysed; none for a blank text.

    They are made one by one as they are asked for. `sections` are the text's anchors, `first_line` the number of its
    first line in the document; what is over one of its `limits` is noted there.
    """
    limits = limits or Limits()
    if len(text) <= sizes.whole_document:
        spans = iter([_Span(0, len(text), (), "")])
    else:
        spans = _merged(_packed(text, sections, sizes, limits), sizes)
    line, counted = first_line, 0
    for span in spans:
        start, end = _without_borders(text, span.start, span.end)
        if start < end:
            line += text.count("\n", counted, start)
            counted, last = start, line + text.count("\n", start, end - 1)
            yield Chunk(text[start:end], " > ".join(span.path), span.anchor, line, last)


def _packed(text: str, sections: Sequence[Section], sizes: ChunkSizes, limits: Limits) -> Iterator[_Span]:
    """The blocks of each section put together up to the target; a small beginning or rest is not left alone.

    A section is what stands under one heading and one anchor. Headings and tags without text below them lead in the
    next section: they never stand alone, and all of it takes the path and the anchor that they lead to.
    """
    packed: deque[tuple[int, int]] = deque()
    above: list[tuple[int, str]] = []
    path: tuple[str, ...] = ()
    anchor, leading = "", True
    for start, end, block, within in _atoms(text, sections, limits):
        heading = block.kind == "heading"
        if not leading and (heading or within != anchor):
            yield from _spans(_with_small_rest(packed, sizes), path, anchor)
            packed.clear()
            leading = True
        if heading:
            above = [entry for entry in above if entry[0] < block.level]
            above.append((block.level, _MARKUP.sub("", block.heading).strip()))
            path = _path(text, block, [name for _, name in above if name], limits)
        anchor = within
        leading = leading and (heading or says_nothing(text, start, end))
        for first, last in _pieces(text, start, end, block.kind == "whole", sizes):
            if packed and (packed[-1][1] - packed[-1][0] < sizes.minimum or last - packed[-1][0] <= sizes.target):
                packed[-1] = (packed[-1][0], last)
            else:
                packed.append((first, last))
            while not leading and len(packed) > 2:
                yield from _spans([packed.popleft()], path, anchor)
    yield from _spans(_with_small_rest(packed, sizes), path, anchor)


def _path(text: str, block: Block, names: Sequence[str], limits: Limits) -> tuple[str, ...]:
    """The headings above a passage, the last of them the one that begins with the block."""
    longest = LONGEST_HEADING
    if sum(min(len(name), longest) for name in names) > LONGEST_PATH:
        longest = LONGEST_PATH // len(names)
    if any(len(name) > longest for name in names):
        limits.note("heading", text, block.start)
    return tuple(cut_at_word(name, longest) for name in names)


def _spans(places: Iterable[tuple[int, int]], path: tuple[str, ...], anchor: str) -> Iterator[_Span]:
    return (_Span(start, end, path, anchor) for start, end in places)


def _with_small_rest(packed: deque[tuple[int, int]], sizes: ChunkSizes) -> deque[tuple[int, int]]:
    """The last two of a section put together when the last one is small."""
    if len(packed) > 1:
        (first, _), (start, end) = packed[-2], packed[-1]
        if end - start < sizes.minimum and end - first <= sizes.maximum:
            packed.pop()
            packed[-1] = (first, end)
    return packed


def _atoms(text: str, sections: Sequence[Section], limits: Limits) -> Iterator[tuple[int, int, Block, str]]:
    """(start, end, block, anchor) of every stretch between two borders, tiling the text."""
    anchors: dict[int, str] = {}
    for offset, anchor in borders(sections):
        blank = _BLANK.match(text, offset)
        anchors[blank.end() if blank else offset] = anchor
    anchor = ""
    for block, following in pairwise(chain(_with_borders(text, sorted(anchors), limits), (Block(len(text)),))):
        anchor = anchors.get(block.start, anchor)
        if following.start > block.start:
            yield block.start, following.start, block, anchor


def _with_borders(text: str, offsets: Sequence[int], limits: Limits) -> Iterator[Block]:
    """The blocks of a text, and where one of the ascending offsets lies within a block, a further one that begins
    there."""
    waiting = deque(offsets)
    for number, block in enumerate(blocks(text)):
        if number == MOST_BLOCKS:
            limits.note("block", text, block.start)
            break
        while waiting and waiting[0] < block.start:
            yield Block(waiting.popleft())
        if waiting and waiting[0] == block.start:
            waiting.popleft()
        yield block
    yield from map(Block, waiting)


def _pieces(text: str, start: int, end: int, whole: bool, sizes: ChunkSizes) -> Iterator[tuple[int, int]]:
    """Offsets of a block itself, or of its parts when it is too long to stay in one piece.

    A part ends at the last border within the target, else at the first one behind it, and where that is too far as
    well, at a blank.
    """
    if end - start <= (sizes.whole_block if whole else sizes.maximum):
        yield start, end
        return
    borders_around = _lines_around if whole else _sentences_around
    behind = start  # the first border behind the target, as far as it is known
    while end - start > sizes.target:
        last = start
        if behind <= start + sizes.target:
            last, behind = borders_around(text, behind, start + sizes.target, end)
        while last == start and behind - start > sizes.maximum:
            blank = text.rfind(" ", start + sizes.target // 2, start + sizes.target)
            cut = blank + 1 if blank >= 0 else start + sizes.target
            yield start, cut
            start = last = cut
        if last == start:
            if behind - start <= sizes.target:
                continue
            last = behind
        yield start, last
        start = last
    if end > start:
        yield start, end


def _lines_around(text: str, known: int, place: int, end: int) -> tuple[int, int]:
    """The last end of a line up to a place, and the first one behind it, at most `end`; those before `known`, which is
    one or the beginning, do not count."""
    last, behind = text.rfind("\n", known, place) + 1, text.find("\n", place, end) + 1
    return max(last, known), behind or end


def _sentences_around(text: str, known: int, place: int, end: int) -> tuple[int, int]:
    """The same for ends of sentences and lines. Only what lies near the place is looked at, where that is enough."""
    last, reach = known, _NEAR
    while True:
        begin = max(known, place - reach)
        while begin > known and text[begin - 1].isspace():  # a border may lie across blanks, but across nothing else
            begin -= 1
        behind = end
        for border in _SENTENCE_ENDS.finditer(text, begin, end):
            if border.end() > place:
                behind = border.end()
                break
            last = border.end()
        if last > known or begin == known:
            return last, behind
        reach *= 4


def _merged(spans: Iterator[_Span], sizes: ChunkSizes) -> Iterator[_Span]:
    """Small neighbours under the same parent heading, and a small section with its first sub-section, put together.

    What is put together stands under the headings that its parts share.
    """
    merged: _Span | None = None
    for span in spans:
        if merged and _belong_together(merged, span, sizes):
            shared = 0
            while shared < min(len(span.path), len(merged.path)) and span.path[shared] == merged.path[shared]:
                shared += 1
            merged = replace(merged, end=span.end, path=span.path[:shared])
            continue
        if merged:
            yield merged
        merged = span
    if merged:
        yield merged


def _belong_together(first: _Span, second: _Span, sizes: ChunkSizes) -> bool:
    if first.anchor != second.anchor or min(first.length, second.length) >= sizes.minimum:
        return False
    related = first.path[:-1] == second.path[:-1] or second.path[: len(first.path)] == first.path
    return related and first.length + second.length <= sizes.target


def _without_borders(text: str, start: int, end: int) -> tuple[int, int]:
    """The offsets of a stretch without the blank lines before it and the blanks behind it."""
    piece = text[start:end].rstrip()
    lead = len(piece) - len(piece.lstrip())
    return start + piece.rfind("\n", 0, lead) + 1, start + len(piece)  # the indentation of the first line stays
