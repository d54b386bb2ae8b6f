"""A document cut into passages along its structure (feature I5).

Headings and ANCHOR tags are borders; fenced code and tables stay whole; a paragraph is cut only when it alone is too
long, then at ends of sentences. Small neighbouring sections are put together. The passages tile the text: joined, they
are the text again, blank borders aside. Time is linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from memory.indexing.anchors import Section, borders, without_tags
from memory.indexing.markdown import Block, blocks
from memory.store.records import Chunk


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
    kind: str = "text"

    @property
    def length(self) -> int:
        return self.end - self.start


_BLANK = re.compile(r"\s*(?<=\n)")  # up to the beginning of the next line that is not blank
_LINE_ENDS = re.compile(r"\n")
_SENTENCE_ENDS = re.compile(r"\n|(?<=[.!?;])\s+|[。！？]")
_MARKUP = re.compile(r"`|\*\*|__")


def split(
    text: str, sections: Sequence[Section] = (), sizes: ChunkSizes = DEFAULT_SIZES, first_line: int = 1
) -> list[Chunk]:
    """The passages of a text in order, not yet analysed. Empty for a blank text.

    `sections` are the text's anchors, `first_line` the number of its first line in the document.
    """
    if len(text) <= sizes.whole_document:
        spans = [_Span(0, len(text), (), "")]
    else:
        packed = [span for group in _sections(text, sections) for span in _pack(text, group, sizes)]
        spans = _merge(packed, sizes)
    line_starts = [0, *(match.end() for match in _LINE_ENDS.finditer(text))]
    return [_chunk(text, span, line_starts, first_line) for span in spans if text[span.start : span.end].strip()]


def _sections(text: str, sections: Sequence[Section]) -> Iterator[list[_Span]]:
    """The blocks of the text, grouped by the heading and the anchor that they stand under.

    Headings and tags without text below them lead in the next section: they never stand alone.
    """
    section: list[_Span] = []
    above: list[tuple[int, str]] = []
    path: tuple[str, ...] = ()
    leading = True
    for start, end, block, anchor in _atoms(text, sections):
        heading = block.kind == "heading"
        if not leading and (heading or anchor != section[-1].anchor):
            yield section
            section, leading = [], True
        if heading:
            above = [entry for entry in above if entry[0] < block.level]
            above.append((block.level, _MARKUP.sub("", block.heading).strip()))
            path = tuple(name for _, name in above if name)
        section.append(_Span(start, end, path, anchor, block.kind))
        leading = leading and (heading or not without_tags(text[start:end]).strip())
    yield section


def _atoms(text: str, sections: Sequence[Section]) -> Iterator[tuple[int, int, Block, str]]:
    """(start, end, block, anchor) of every stretch between two borders, tiling the text."""
    outline = blocks(text)
    line_starts = [0, *(match.end() for match in _LINE_ENDS.finditer(text))]
    anchors: dict[int, str] = {}
    for offset, anchor in borders(sections):
        blank = _BLANK.match(text, offset)
        anchors[blank.end() if blank else offset] = anchor
    begins = {line_starts[block.line]: block for block in outline}
    starts = sorted(begins.keys() | anchors.keys())
    block, anchor = outline[0], ""
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        anchor = anchors.get(start, anchor)
        block = begins.get(start) or Block(block.line)
        if end > start:
            yield start, end, block, anchor


def _pack(text: str, section: list[_Span], sizes: ChunkSizes) -> list[_Span]:
    """The blocks of one section put together up to the target; a small beginning or rest is not left alone.

    All take the path and the anchor of the last block, which the headings and tags before it lead to.
    """
    packed: list[tuple[int, int]] = []
    for block in section:
        for start, end in _pieces(text, block, sizes):
            first, last = packed[-1] if packed else (0, 0)
            if packed and (last - first < sizes.minimum or end - first <= sizes.target):
                packed[-1] = (first, end)
            else:
                packed.append((start, end))
    if len(packed) > 1:
        (first, _), (start, end) = packed[-2:]
        if end - start < sizes.minimum and end - first <= sizes.maximum:
            packed[-2:] = [(first, end)]
    return [_Span(start, end, section[-1].path, section[-1].anchor) for start, end in packed]


def _pieces(text: str, span: _Span, sizes: ChunkSizes) -> Iterator[tuple[int, int]]:
    """Offsets of the span itself, or of its parts when it is too long to stay whole."""
    whole = span.kind == "whole"
    if span.length <= (sizes.whole_block if whole else sizes.maximum):
        yield span.start, span.end
        return
    start = last = span.start
    ends = (match.end() for match in (_LINE_ENDS if whole else _SENTENCE_ENDS).finditer(text, start, span.end))
    for border in chain(ends, (span.end,)):
        if border - start > sizes.target and last > start:
            yield start, last
            start = last
        while border - start > sizes.maximum:
            blank = text.rfind(" ", start + sizes.target // 2, start + sizes.target)
            cut = blank + 1 if blank >= 0 else start + sizes.target
            yield start, cut
            start = cut
        last = border
    if span.end > start:
        yield start, span.end


def _merge(spans: list[_Span], sizes: ChunkSizes) -> list[_Span]:
    """Small neighbours under the same parent heading, and a small section with its first sub-section, put together.

    What is put together stands under the headings that its parts share.
    """
    merged: list[_Span] = []
    for span in spans:
        if merged and _belong_together(merged[-1], span, sizes):
            shared = 0
            while shared < min(len(span.path), len(merged[-1].path)) and span.path[shared] == merged[-1].path[shared]:
                shared += 1
            merged[-1] = replace(merged[-1], end=span.end, path=span.path[:shared])
        else:
            merged.append(span)
    return merged


def _belong_together(first: _Span, second: _Span, sizes: ChunkSizes) -> bool:
    if first.anchor != second.anchor or min(first.length, second.length) >= sizes.minimum:
        return False
    related = first.path[:-1] == second.path[:-1] or second.path[: len(first.path)] == first.path
    return related and first.length + second.length <= sizes.target


def _chunk(text: str, span: _Span, line_starts: list[int], first_line: int) -> Chunk:
    piece = text[span.start : span.end]
    shown = piece.rstrip()
    lead = len(shown) - len(shown.lstrip())
    lead = shown.rfind("\n", 0, lead) + 1  # blank lines go, the indentation of the first line stays
    return Chunk(
        text=shown[lead:],
        heading=" > ".join(span.path),
        anchor=span.anchor,
        first_line=bisect_right(line_starts, span.start + lead) + first_line - 1,
        last_line=bisect_right(line_starts, span.start + len(shown) - 1) + first_line - 1,
    )
