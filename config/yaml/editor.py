"""Changes values of a YAML text in place: every other character is kept, with comments, layout and line ends.

Edits are spans of the nodes that `config.yaml.reader` read. Layouts differ more than an editor can know, so callers
read the result again and compare it with what they meant.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Mapping
from typing import Any

from speckit_memory.config.yaml.reader import AMBIGUOUS, MappingEntry, Node, Place, Scalar, Sequence, YamlMapping
from speckit_memory.errors import Where

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""Line breaks of YAML, whose parser reports positions; `str.splitlines` knows further ones."""
_NEWLINE = re.compile("\r\n|\n|\r")
_DOCUMENT_END = re.compile(r"(?:\A|(?<=[\n\r]))\.\.\.(?=\s|\Z)")
_ITEM = re.compile(r"[ \t]*-[ \t]+\Z")
_RESERVED = frozenset({"true", "false", "null"}) | {word.lower() for word in AMBIGUOUS}
_CONTROL = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


class NotInPlaceError(Exception):
    """A change is not possible in the present layout of the text."""


class YamlEditor:
    """Collects edits of a text; `result` applies them."""

    def __init__(self, text: str, first_line: int = 1, newline: str = "") -> None:
        """An editor of `text`, whose nodes were read with this `first_line`. `newline`: that of the text unless set."""
        self._text = text
        self._first_line = first_line
        # Offsets in characters at which lines begin, and the end of the text.
        self._starts = [0, *(found.end() for found in _BREAK.finditer(text))]
        self._edits: list[tuple[int, int, str]] = []
        found = _NEWLINE.search(text)
        self._newline = newline or (found.group() if found else "\n")

    def result(self) -> str:
        """The text after all edits, which must not overlap; insertions at one offset keep their order."""
        parts, last = [], 0
        # Stable: edits at one place keep their order, and `last` only grows as long as none overlap.
        for start, end, new in sorted(self._edits, key=lambda edit: edit[:2]):
            parts += [self._text[last:start], new.replace("\n", self._newline)]
            last = end
        return "".join((*parts, self._text[last:]))

    def merge(self, mapping: YamlMapping, changes: Mapping[str, Any]) -> None:
        """Set values of a mapping; mappings in `changes` are merged key by key.

        Raises:
            NotInPlaceError: A mapping would replace another value, or another value a mapping.
        """
        new: dict[str, Any] = {}
        for key, value in changes.items():
            entry = mapping.get(key)
            if entry is None:
                new[key] = value
            elif isinstance(entry.value, YamlMapping) and isinstance(value, dict):
                self.merge(entry.value, value)
            elif isinstance(entry.value, Scalar) and entry.value.value is None and isinstance(value, dict):
                self._fill(mapping, entry, value)
            elif isinstance(entry.value, YamlMapping) or isinstance(value, dict):
                raise NotInPlaceError
            else:
                self.replace(entry, flow_style(value))
        if new:
            self.insert(mapping, {key: _block(key, value, mapping.flow) for key, value in new.items()})

    def merge_root(self, root: Node | None, changes: Mapping[str, Any]) -> None:
        """Set values of the mapping of the whole text, which may be empty. Raises NotInPlaceError as `merge`."""
        if isinstance(root, YamlMapping):
            self.merge(root, changes)
        elif isinstance(root, Scalar) and root.value is None and root.text:
            self._splice(root, flow_style(changes))
        elif root is None or (isinstance(root, Scalar) and root.value is None):
            ended = _DOCUMENT_END.search(self._text)
            at = ended.start() if ended else len(self._text)
            self._insert_lines(at, [line for key, value in changes.items() for line in _block(key, value, False)])
            # Unlike within a text, the last line is complete.
            if not ended and self._text and not _BREAK.match(self._text, len(self._text) - 1):
                self.add_at_end("\n")
        else:
            raise NotInPlaceError

    def replace(self, entry: MappingEntry, value: str) -> None:
        """Replace the value of an entry by a YAML text on one line. Comments between the lines of the value go."""
        node = entry.value
        if isinstance(node, Scalar) or node.flow:
            self._splice(node, value)
            return
        colon = re.compile(r"[ \t]*:").match(self._text, self._offset(entry.key_end))
        if colon is None:
            raise NotInPlaceError
        self._edits.append((colon.end(), colon.end(), f" {value}"))
        # A block begins on the line after its key, with comments between.
        below = self._next_line(self._offset(entry.key_end))
        self._edits.append((below, self._next_line(self._last(node)), ""))

    def insert(self, mapping: YamlMapping, entries: Mapping[str, Collection[str]]) -> None:
        """Append entries to a mapping, each given as the YAML lines of its key and value."""
        if not mapping.flow:
            first = mapping.entries[0].where if mapping.entries else mapping.where
            pad = " " * (first.column - 1)
            lines = [pad + line for entry in entries.values() for line in entry]
            self._insert_lines(self._next_line(self._last(mapping)), lines)
            return
        close = len(self._text[: self._offset(mapping.end) - 1].rstrip(" \t"))
        pairs = ", ".join(line for entry in entries.values() for line in entry)
        inside = self._text[self._offset_of(mapping.where) : close].rstrip()
        self._edits.append((close, close, pairs if inside.endswith(("{", ",")) else f", {pairs}"))
        if inside.endswith(","):
            self._edits[-1] = (close, close, f" {pairs}")

    def remove(self, mapping: YamlMapping, keys: Collection[str]) -> None:
        """Remove entries from a mapping, with the rest of their lines; none if nothing else would be left."""
        entries = mapping.entries
        # Place of the last entry that stays; len(entries) if none does, and then nothing is removed.
        kept = max((place for place, entry in enumerate(entries) if entry.key not in keys), default=len(entries))
        for place, entry in enumerate(entries if kept < len(entries) else ()):
            if entry.key not in keys:
                continue
            start, end = self._offset_of(entry.where), self._offset(entry.value.end)
            if not mapping.flow:
                self.remove_lines(entry)
            # Up to the next entry, so that the comma and the blanks after this one go too.
            elif place < kept:
                self._edits.append((start, self._offset_of(entries[place + 1].where), ""))
            else:  # no later entry stays: remove the comma before this one
                self._edits.append((self._text.rfind(",", 0, start), end, ""))

    def remove_lines(self, entry: MappingEntry) -> None:
        """Remove the lines of an entry of a block."""
        start, end = self._line_start(self._offset_of(entry.where)), self._last(entry.value)
        self._edits.append((start, self._next_line(max(end, self._offset(entry.key_end))), ""))

    def list_items(self, items: Sequence, keep: Collection[int], new: Collection[str]) -> bool:
        """Remove items of a list with each on lines of its own, and append others; False for any other list.

        Args:
            items: The list.
            keep: The indexes of the items that stay.
            new: The items to append, as YAML texts on one line.
        """
        starts = [self._line_start(self._offset_of(item.where)) for item in items.items]
        dashes = [
            self._text[start : self._offset_of(item.where)] for start, item in zip(starts, items.items, strict=True)
        ]
        if items.flow or not all(map(_ITEM.match, dashes)):
            return False
        for place, (start, item) in enumerate(zip(starts, items.items, strict=True)):
            if place not in keep:
                self._edits.append((start, self._next_line(self._last(item)), ""))
        indent = dashes[0].partition("-")[0]
        if new:
            self._insert_lines(self._next_line(self._last(items)), [f"{indent}- {item}" for item in new])
        return True

    def add_above(self, where: Where, lines: Collection[str]) -> None:
        """Insert lines above the one of a place, with its indentation."""
        start = self._line_start(self._offset_of(where))
        found = re.compile(r"[ \t]*").match(self._text, start)
        pad = found.group() if found else ""
        self._edits.append((start, start, "".join(f"{pad}{line}\n" for line in lines)))

    def add_at_end(self, text: str) -> None:
        """Append text."""
        self._edits.append((len(self._text), len(self._text), text))

    def _fill(self, mapping: YamlMapping, entry: MappingEntry, value: Mapping[str, Any]) -> None:
        """Give an entry without a value a mapping: in a block below the line of its key."""
        if mapping.flow:
            self._splice(entry.value, flow_style(value))
            return
        start, end = self._offset_of(entry.value.where), self._offset(entry.value.end)
        if start < end:
            self._edits.append((len(self._text[:start].rstrip(" \t")), end, ""))
        pad = " " * (entry.where.column + 1)
        lines = [pad + line for key, inner in value.items() for line in _block(key, inner, False)]
        self._insert_lines(self._next_line(self._offset(entry.key_end)), lines)

    def _splice(self, node: Node, value: str) -> None:
        start, end = self._offset_of(node.where), self._last(node)
        after_colon = start == end and self._text[:start].endswith(":")
        self._edits.append((start, end, f" {value}" if after_colon else value))

    def _insert_lines(self, at: int, lines: Collection[str]) -> None:
        # Without a line break at the end of the text, one is put before the new lines instead.
        complete = at == 0 or _BREAK.match(self._text, at - 1)
        text = "\n".join(lines)
        self._edits.append((at, at, f"{text}\n" if complete else f"\n{text}"))

    def _offset(self, place: Place) -> int:
        return self._starts[place[0] - self._first_line] + place[1] - 1

    def _offset_of(self, where: Where) -> int:
        return self._offset((where.line, where.column))

    def _last(self, node: Node) -> int:
        """The offset where the text of a value ends. Block scalars end with the blank lines after them."""
        start = self._offset_of(node.where)
        return start + len(self._text[start : self._offset(node.end)].rstrip())

    def _line_start(self, offset: int) -> int:
        return self._starts[bisect_right(self._starts, offset) - 1]

    def _next_line(self, offset: int) -> int:
        """The offset of the line after this one; the end of the text after the last."""
        place = bisect_right(self._starts, offset)
        return self._starts[place] if place < len(self._starts) else len(self._text)


def _block(key: str, value: Any, flow: bool) -> list[str]:
    """The lines of an entry. In a block, a mapping of mappings takes a line for each."""
    if isinstance(value, dict) and value and not flow and all(isinstance(inner, dict) for inner in value.values()):
        return [f"{flow_style(key)}:", *(f"  {flow_style(name)}: {flow_style(inner)}" for name, inner in value.items())]
    return [f"{flow_style(key)}: {flow_style(value)}"]


def flow_style(value: Any) -> str:
    """A value in YAML's flow style, of which JSON is a subset; plain words are unquoted if that is safe."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow_style(key)}: {flow_style(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow_style(item) for item in value) + "]"
    if (
        isinstance(value, str)
        and value.replace("_", "").isalnum()
        and value[0].isalpha()
        and value.lower() not in _RESERVED
    ):
        return value
    return quote_scalar(value)


def quote_scalar(value: str | float | bool | None) -> str:
    """A single value as YAML on one line; a text in quotes."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
