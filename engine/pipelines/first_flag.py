"""Finds places for the first flag of a flags file. The caller parses each result and takes the first valid one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from speckit_memory.config.yaml.reader import MappingEntry, Node, YamlMapping
from speckit_memory.engine.pipelines.rewriting import Edit, PositionedText

_NULL = re.compile(r"(?:~|null|Null|NULL)(?![^\s,}\]])")
_BLANK_BEFORE = re.compile(r"[ \t]*\Z")
_END = re.compile(r"(?:\A|(?<=[\n\r]))\.\.\.(?=\s|\Z)")
"""A line that ends a YAML document."""


def first_flag(text: str, node: Node | None, flags: MappingEntry | None, entry: str) -> Iterator[tuple[Edit, ...]]:
    """Yields edits that add an entry to a text without flags, the tidiest first.

    Args:
        text: The flags file.
        node: Its root node, None for an empty file.
        flags: Its key `flags` with a null value, None if there is no such key.
        entry: The flag as YAML in flow style.
    """
    page = PositionedText(text)
    if flags is not None:
        yield from _below(page, text, flags, entry)
        return
    block = f"flags:\n  {entry}\n"
    if isinstance(node, YamlMapping) and node.entries:
        start = page.at(node.entries[0].where)
        pad = " " * (node.entries[0].where.column - 1)
        block = f"{pad}flags:\n{pad}  {entry}\n"
        before: tuple[Edit, ...] = ((start - len(pad), start - len(pad), block),)
    else:
        before = ()
    ended = not text or text.endswith(("\n", "\r"))
    # at the end, before a document end marker, before the first key, or inside a flow mapping
    yield ((len(text), len(text), block if ended else f"\n{block}"),)
    for end in _END.finditer(text):
        yield ((end.start(), end.start(), block),)
    if before:
        yield before
    if node is not None:
        start = page.at(node.where)
        if isinstance(node, YamlMapping):
            yield ((start + 1, start + 1, f"flags: {{{entry}}}" + (", " if node.entries else "")),)
        elif null := _NULL.match(text, start):
            yield ((start, null.end(), f"{{flags: {{{entry}}}}}"),)


def _below(page: PositionedText, text: str, flags: MappingEntry, entry: str) -> Iterator[tuple[Edit, ...]]:
    """Edits that put the entry below an empty key, or in place of its null."""
    start = page.at(flags.value.where)
    null = _NULL.match(text, start)
    end = null.end() if null else start
    line = " " * (flags.where.column + 1) + entry
    below = page.line(flags.value.where.line + 1 if null else flags.where.line + 1)
    lone = below == len(text) and not text.endswith(("\n", "\r"))
    edits = ((below, below, f"\n{line}" if lone else f"{line}\n"),)
    if null:
        blank = _BLANK_BEFORE.search(text, 0, start)
        yield ((blank.start() if blank else start, end, ""), *edits)
    else:
        yield edits
    yield ((start, end, f"{{{entry}}}"),)
    yield ((start, end, f" {{{entry}}}"),)
