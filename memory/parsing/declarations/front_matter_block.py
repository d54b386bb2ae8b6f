"""Locates the front matter block at the head of a document and reads its values.

YAML is enclosed by lines of three dashes, TOML by lines of three plus signs; blank lines may precede either.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from datetime import date, time
from typing import Literal

from speckit_memory.config.yaml.reader import MappingEntry, Node, Scalar, Sequence, YamlMapping, read
from speckit_memory.errors import Problem, Where

MOST_GROUPS = 500
"""Maximum number of keys to read one by one when the block cannot be read as a whole."""

_OPENING = re.compile(r"(?:[ \t]*+\n)*+(---|\+\+\+)[ \t]*\n")
_CLOSING = {
    "---": re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE),
    "+++": re.compile(r"^\+\+\+[ \t]*$", re.MULTILINE),
}
_KEY = re.compile(r"^(?![#\s]|-[ \t])", re.MULTILINE)
"""The start of a line that begins a key rather than a list item."""
_TEXT_LINE = re.compile(r"(title|description):[ \t]+(\S[^\n]*?)[ \t]*\n?\Z")
_TOML_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")
_TOML_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FrontMatterBlock:
    """A block as the offsets of its first line and of its closing line; the body of the document begins at
    `body_start`. `first_line` is the line number of its first line."""

    form: Literal["yaml", "toml"]
    start: int
    end: int
    body_start: int
    first_line: int


@dataclass(frozen=True, slots=True)
class DeclaredBlock:
    """The values of a block and its problems. `node` is None if nothing is declared or readable; the keys in the lines
    `lost` were left out."""

    node: Node | None
    problems: list[Problem]
    lost: tuple[int, ...] = ()


def find_block(text: str) -> FrontMatterBlock | None:
    """Return the closed block with which a text begins, else None. Line ends must be "\\n"."""
    opening = _OPENING.match(text)
    closing = _CLOSING[opening[1]].search(text, opening.end()) if opening else None
    if not opening or not closing:
        return None
    body_start = min(closing.end() + 1, len(text))
    first_line = text.count("\n", 0, opening.end()) + 1
    form: Literal["yaml", "toml"] = "yaml" if opening[1] == "---" else "toml"
    return FrontMatterBlock(form, opening.end(), closing.start(), body_start, first_line)


def opening_end(text: str) -> int:
    """Return the offset after the line that opens a block, -1 if there is none."""
    opening = _OPENING.match(text)
    return opening.end() if opening else -1


def read_block(text: str, block: FrontMatterBlock, file: str) -> DeclaredBlock:
    """Read the values of a block. An unreadable line of YAML is reported, and the other lines are still used."""
    said = text[block.start : block.end]
    if block.form == "toml":
        return _read_toml(said, file, block.first_line)
    node, problems = read(said, file, first_line=block.first_line)
    if node is None and problems:
        return _read_by_keys(said, file, block.first_line, problems)
    return DeclaredBlock(node, problems)


def toml_key_lines(said: str) -> dict[str, int]:
    """Return the line, counted from 0, of each top-level TOML key before the first table."""
    table = _TOML_TABLE.search(said)
    lines = said[: table.start() if table else len(said)].split("\n")
    found = [(re.match(r"[ \t]*([A-Za-z0-9_-]+)[ \t]*=", line), number) for number, line in enumerate(lines)]
    # Reversed, so that the first line of a repeated key wins.
    return {match[1]: number for match, number in reversed(found) if match}


def _read_by_keys(said: str, file: str, first_line: int, problems: list[Problem]) -> DeclaredBlock:
    """Read invalid YAML key by key; return `problems`, those of the whole block, if no key is readable."""
    starts = [match.start() for match in _KEY.finditer(said) if match.start() < len(said)]
    if not starts or len(starts) > MOST_GROUPS:
        return DeclaredBlock(None, problems)
    if said[: starts[0]].strip():
        starts.insert(0, 0)
    entries: list[MappingEntry] = []
    told: list[Problem] = []
    lost: list[int] = []
    # Each group is a key with its indented lines. An unparsable title or description is read as plain text,
    # since an unquoted colon in one is a common mistake.
    for start, end in zip(starts, [*starts[1:], len(said)], strict=True):
        line = first_line + said.count("\n", 0, start)
        node, found = read(said[start:end], file, first_line=line)
        text = _TEXT_LINE.match(said[start:end]) if not isinstance(node, YamlMapping) else None
        if text:
            where = Where(file, line, text.start(2) + 1)
            value = Scalar(text[2], where, text[2], (line, text.end(2) + 1))
            entries.append(MappingEntry(text[1], Where(file, line, 1), value, (line, text.end(1) + 1)))
            message = f"line {line} is not valid YAML, and is read as the text '{text[2][:80]}'"
            told.append(Problem("E099", message, where=where))
        elif isinstance(node, YamlMapping):
            entries += [entry for entry in node.entries if all(entry.key != other.key for other in entries)]
            told += found
        elif found:
            lost.append(line)
            told.append(Problem("E099", f"line {line} is left out: {found[0].message}", where=found[0].where))
    node = YamlMapping(tuple(entries), Where(file, first_line, 1)) if entries else None
    return DeclaredBlock(node, told if entries else problems, tuple(lost))


class _Float(float):
    """A float that keeps its spelling in `text`."""

    text = ""


def _as_written(text: str) -> float:
    number = _Float(text)
    number.text = text
    return number


def _read_toml(said: str, file: str, first_line: int) -> DeclaredBlock:
    try:
        values = tomllib.loads(said, parse_float=_as_written)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        place = _TOML_PLACE.search(str(error))
        line, column = (int(place[1]), int(place[2])) if place else (1, 1)
        message = f"not valid TOML: {_TOML_PLACE.sub('', str(error)).strip() or 'nested too deeply'}"
        return DeclaredBlock(None, [Problem("E090", message, where=Where(file, first_line + line - 1, column))])
    lines = toml_key_lines(said)
    entries = []
    for key, value in values.items():
        where = Where(file, first_line + lines.get(key, 0), 1)
        entries.append(MappingEntry(key, where, _node(value, where)))
    return DeclaredBlock(YamlMapping(tuple(entries), Where(file, first_line, 1)) if entries else None, [])


def _node(value: object, where: Where) -> Node:
    match value:
        case dict():
            return YamlMapping(
                tuple(MappingEntry(str(key), where, _node(item, where)) for key, item in value.items()), where
            )
        case list():
            return Sequence(tuple(_node(item, where) for item in value), where)
        case date() | time():
            return Scalar(value.isoformat(), where, value.isoformat())
        case bool():
            return Scalar(value, where, "true" if value else "false")
        case _Float():
            return Scalar(float(value), where, value.text)
        case int() | str():
            return Scalar(value, where, str(value))
    raise AssertionError(value)  # TOML has no other values
