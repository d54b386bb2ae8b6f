"""Splits a document into passages along its structure (feature I5).

Headings and ANCHOR tags are borders; fenced code and tables stay whole; a paragraph is split only if it alone is too
long, and then at sentence ends. Small neighbouring sections are merged. The passages tile the text: joined, they give
the text again except for blank borders. Time is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from speckit_memory.memory.parsing.limits import LONGEST_HEADING, LONGEST_PATH, MOST_BLOCKS, Limits, cut_at_word
from speckit_memory.memory.parsing.markdown.anchors import Section, borders, says_nothing
from speckit_memory.memory.parsing.markdown.markdown import MarkdownBlock, blocks
from speckit_memory.memory.store.records import Chunk


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """Sizes in characters. A document up to `whole_document` is one passage; others are packed up to `target`, in
    passages of at least `minimum` where the structure allows it. A paragraph over `maximum` and a code block or table
    over `whole_block` are split."""

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
    """A stretch of text in one section: offsets, path of headings above it, id of the innermost anchor."""

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
"""Characters before an offset in which its last border is searched for first."""
_MARKUP = re.compile(r"`|\*\*|__")


def split(
    text: str,
    sections: Sequence[Section] = (),
    sizes: ChunkSizes = DEFAULT_SIZES,
    first_line: int = 1,
    limits: Limits | None = None,
) -> Iterator[Chunk]:
    """Yield the passages of a text lazily and in order, not yet analysed; none for a blank text.

    Args:
        text: The body of the document.
        sections: The anchored sections of the text.
        sizes: The passage sizes, in characters.
        first_line: The number of the text's first line in the document.
        limits: Notes headings and blocks beyond the limits of a document.
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
    """Pack the blocks of each section up to the target size; a small first or last part is merged.

    A section is the text under one heading and one anchor. Headings and tags with no text below them are joined to the
    next section, never a passage alone, and take its path and anchor.
    """
    packed: deque[tuple[int, int]] = deque()
    above: list[tuple[int, str]] = []
    path: tuple[str, ...] = ()
    anchor, leading = "", True
    # `leading` is true while the section has no text yet, only headings and tags.
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
            # Extend the last part while it is below the minimum, or stays within the target.
            if packed and (packed[-1][1] - packed[-1][0] < sizes.minimum or last - packed[-1][0] <= sizes.target):
                packed[-1] = (packed[-1][0], last)
            else:
                packed.append((first, last))
            # Only the last two parts can still change (a small rest is merged), so the others are emitted at once.
            while not leading and len(packed) > 2:
                yield from _spans([packed.popleft()], path, anchor)
    yield from _spans(_with_small_rest(packed, sizes), path, anchor)


def _path(text: str, block: MarkdownBlock, names: Sequence[str], limits: Limits) -> tuple[str, ...]:
    """Return the path of headings, shortened to the limits; the last is the heading of this block."""
    longest = LONGEST_HEADING
    if sum(min(len(name), longest) for name in names) > LONGEST_PATH:
        longest = LONGEST_PATH // len(names)
    if any(len(name) > longest for name in names):
        limits.note("heading", text, block.start)
    return tuple(cut_at_word(name, longest) for name in names)


def _spans(places: Iterable[tuple[int, int]], path: tuple[str, ...], anchor: str) -> Iterator[_Span]:
    return (_Span(start, end, path, anchor) for start, end in places)


def _with_small_rest(packed: deque[tuple[int, int]], sizes: ChunkSizes) -> deque[tuple[int, int]]:
    """Merge the last two parts of a section if the last one is small."""
    if len(packed) > 1:
        (first, _), (start, end) = packed[-2], packed[-1]
        if end - start < sizes.minimum and end - first <= sizes.maximum:
            packed.pop()
            packed[-1] = (first, end)
    return packed


def _atoms(text: str, sections: Sequence[Section], limits: Limits) -> Iterator[tuple[int, int, MarkdownBlock, str]]:
    """Yield (start, end, block, anchor) of every stretch between two borders; together they tile the text."""
    anchors: dict[int, str] = {}
    for offset, anchor in borders(sections):
        blank = _BLANK.match(text, offset)
        anchors[blank.end() if blank else offset] = anchor
    anchor = ""
    for block, following in pairwise(chain(_with_borders(text, sorted(anchors), limits), (MarkdownBlock(len(text)),))):
        anchor = anchors.get(block.start, anchor)
        if following.start > block.start:
            yield block.start, following.start, block, anchor


def _with_borders(text: str, offsets: Sequence[int], limits: Limits) -> Iterator[MarkdownBlock]:
    """Yield the blocks of a text, plus one that begins at each of the ascending offsets inside a block."""
    waiting = deque(offsets)
    for number, block in enumerate(blocks(text)):
        if number == MOST_BLOCKS:
            limits.note("block", text, block.start)
            break
        while waiting and waiting[0] < block.start:
            yield MarkdownBlock(waiting.popleft())
        if waiting and waiting[0] == block.start:
            waiting.popleft()
        yield block
    yield from map(MarkdownBlock, waiting)


def _pieces(text: str, start: int, end: int, whole: bool, sizes: ChunkSizes) -> Iterator[tuple[int, int]]:
    """Yield the offsets of a block, or of its parts if it is too long to stay in one piece.

    A part ends at the last border within the target, else at the first one after it; if that is too far, at a blank.
    """
    if end - start <= (sizes.whole_block if whole else sizes.maximum):
        yield start, end
        return
    borders_around = _lines_around if whole else _sentences_around
    behind = start  # the first border after the target, if known; otherwise an earlier offset
    # `last` is the last border within the target, `behind` the first one after it; both only move forward.
    while end - start > sizes.target:
        last = start
        if behind <= start + sizes.target:
            last, behind = borders_around(text, behind, start + sizes.target, end)
        # No border within reach: cut at a blank in the second half of the target, else in the middle of a word.
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
    """Return the last line end up to `place` and the first after it (at most `end`). `known` is an earlier border or
    the start; line ends before it are ignored."""
    last, behind = text.rfind("\n", known, place) + 1, text.find("\n", place, end) + 1
    return max(last, known), behind or end


def _sentences_around(text: str, known: int, place: int, end: int) -> tuple[int, int]:
    """Do the same for ends of sentences and lines, searching a growing window before `place`."""
    last, reach = known, _NEAR
    while True:
        begin = max(known, place - reach)
        while begin > known and text[begin - 1].isspace():  # a sentence end may span blanks: never start inside them
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
    """Merge small neighbours under the same parent heading, and a small section with its first sub-section.

    A merged span has the heading path that its parts share.
    """
    merged: _Span | None = None
    for span in spans:
        if merged and _belong_together(merged, span, sizes):
            shared = 0
            # The longest common prefix of both heading paths.
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
    """Return the offsets of a stretch without leading blank lines and trailing blanks."""
    piece = text[start:end].rstrip()
    lead = len(piece) - len(piece.lstrip())
    return start + piece.rfind("\n", 0, lead) + 1, start + len(piece)  # the indentation of the first line stays
