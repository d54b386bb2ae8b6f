"""Changes values of front matter in place: every other character of the document is kept (feature T8)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from typing import NamedTuple

from speckit_memory.config.yaml.reader import AMBIGUOUS, MappingEntry, Node, Scalar, Sequence, YamlMapping, plain, read
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.memory.parsing.declarations import front_matter, front_matter_block
from speckit_memory.memory.parsing.declarations.front_matter import FrontMatter
from speckit_memory.memory.parsing.encoding import clean
from speckit_memory.memory.parsing.limits import MOST_TRIGGERS

Value = str | float | tuple[str, ...]
"""A text, a number or a list of texts."""

KEYS: dict[str, tuple[str, ...]] = {
    "title": ("title",),
    "triggers": ("trigger_phrases", "triggers"),
    "tier": ("importance_tier", "tier"),
    "importance_weight": ("importance_weight", "importanceWeight"),
    "created_at": ("created", "created_at", "date"),
}
"""The values that can be changed, and their keys in front matter; the first is used if none is present."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_PLAIN = re.compile(r"[^\W\d_](?:[\w ./()+-]*[\w)])?\Z")
_CONTROL = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
_CONSTANTS = AMBIGUOUS | {"true", "True", "TRUE", "false", "False", "FALSE", "null", "Null", "NULL"}


class EditedBlock(NamedTuple):
    """The lines of a document; the indexes of the first line of its front matter and of its closing delimiter; the
    entries declared, and the lines, from 1, of keys that cannot be read."""

    form: str
    lines: list[str]
    start: int
    end: int
    entries: tuple[MappingEntry, ...]
    lost: tuple[int, ...]


def edit_front_matter(text: str, values: MappingOf[str, Value], file: str) -> str:
    """The text of a document with changed front matter.

    Other lines are kept, with comments and line endings; front matter is added if there is none. When a list is
    reordered, the comments between its items are lost.

    Args:
        text: The document.
        values: New values by the names of `KEYS`.
        file: Name of the document, for messages.

    Raises:
        SpeckitError: E101 if something else would have to change, as in broken or one-line front matter.
    """
    before, problems = front_matter.parse(clean(text), file)
    newline = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    if unread := front_matter.unread(clean(text), before, problems):
        raise unreadable(file, unread)
    block = block_of(text, file) if before.body_start else None
    if block is None:
        said = "".join(f"{KEYS[name][0]}: {scalar_or_list(value)}{newline}" for name, value in values.items())
        after = f"---{newline}{said}---{newline}{text}"
    elif block.form == "toml":
        after = _edited_toml(block, values, newline)
    else:
        lines, late = list(block.lines), []
        for name, value in values.items():
            entry = next((one for one in block.entries if one.key in KEYS[name]), None)
            if entry is None:
                late.append(f"{KEYS[name][0]}: {scalar_or_list(value)}{newline}")
                continue
            first, last = entry.where.line - 1, last_line(block, entry)
            comment = comment_of(lines[first].rstrip("\r\n"), entry)
            if isinstance(entry.value, Sequence) and last > first and isinstance(value, tuple) and value:
                lines[first] = f"{entry.key}:{comment}{newline}"
                lines[first + 1 : last + 1] = _items(
                    lines[first + 1 : last + 1], first + 2, entry.value, value, newline
                )
            else:
                lines[first] = f"{entry.key}: {scalar_or_list(value)}{comment}{newline}"
                # Keep the number of lines: places of later entries stay valid until the end.
                lines[first + 1 : last + 1] = [""] * (last - first)
        # New keys go before the closing delimiter.
        lines.insert(block.end, "".join(late))
        after = "".join(lines)
    # Editing works on lines: parse the result to be sure that nothing else has changed.
    _require_only(before, len(problems), text, after, values, file)
    return after


def unreadable(file: str, problem: Problem) -> SpeckitError:
    """The error for unreadable front matter: it is not changed, and no second block is put before it."""
    message = f"{file}: its front matter cannot be read, and no second block is put before it: {problem.message}"
    return SpeckitError("E101", message, actions=("correct the front matter",))


def _edited_toml(block: EditedBlock, values: MappingOf[str, Value], newline: str) -> str:
    """The document with values on separate lines, before any table."""
    lines, first = list(block.lines), block.start
    places = front_matter_block.toml_key_lines("".join(line.rstrip("\r\n") + "\n" for line in lines[first : block.end]))
    for name, value in values.items():
        key = next((each for each in KEYS[name] if each in places), KEYS[name][0])
        if isinstance(value, tuple):
            said = f"[{', '.join(map(quote_scalar, value))}]"
        else:
            said = quote_scalar(" ".join(value.split())) if isinstance(value, str) else repr(value)
        line = f"{key} = {said}{newline}"
        if key in places:
            lines[first + places[key]] = line
        else:
            lines[first - 1] += line
    return "".join(lines)


def block_of(text: str, file: str) -> EditedBlock | None:
    """The front matter at the beginning of a text. Raises E101 if it cannot be edited."""
    cleaned = clean(text)
    found = front_matter_block.find_block(cleaned)
    if found is None:
        return None
    lines = [line for line in _LINE.findall(text) if line]
    declared = front_matter_block.read_block(cleaned, found, file)
    entries = declared.node.entries if isinstance(declared.node, YamlMapping) else ()
    if any(entry.where.column != 1 for entry in entries):
        raise SpeckitError("E101", f"{file}: its front matter is on one line or indented")
    start, end = found.first_line - 1, cleaned.count("\n", 0, found.end)
    return EditedBlock(found.form, lines, start, end, entries, declared.lost)


def last_line(block: EditedBlock, entry: MappingEntry) -> int:
    """The index of the last line of an entry, without trailing blank lines and comments."""
    keys = (*(other.where.line for other in block.entries), *block.lost)
    following = [line - 1 for line in keys if line > entry.where.line]
    last = min([*following, block.end]) - 1
    while last > entry.where.line - 1 and re.match(r"#|[ \t]*[\r\n]*\Z", block.lines[last]):
        last -= 1
    return last


def comment_of(line: str, entry: MappingEntry) -> str:
    """The comment at the end of an entry's first line, including the blanks before it; "" for none."""
    # A `#` may be inside a value: it begins a comment only if the text before it has the same value.
    for found in re.finditer(r"[ \t]+#", line):
        node, problems = read(line[: found.start()], "")
        if not problems and isinstance(node, YamlMapping) and len(node.entries) == 1:
            said = plain(node.entries[0].value)
            if said is None or said == plain(entry.value):  # None: the value is on the following lines
                return line[found.start() :]
    return ""


def _items(
    lines: SequenceOf[str], first_line: int, before: Sequence, wanted: SequenceOf[str], newline: str
) -> list[str]:
    """The same number of lines, with the wanted items: lines of unchanged items and comments between them are kept, new
    items follow. If the order changes, or an item shares its line, all lines are new."""
    number = {item.where.line - first_line: _as_written(item) for item in before.items}
    kept = [each for each in number.values() if each in wanted]
    in_lines = len(number) == len(before.items) and all(
        re.match(r"[ \t]*-[ \t]", line) if at in number else re.match(r"[ \t]*(#|[\r\n]*\Z)", line)
        for at, line in enumerate(lines)
    )
    if not in_lines or kept != list(wanted[: len(kept)]):
        return [*[""] * (len(lines) - 1), "".join(f"  - {_scalar(each)}{newline}" for each in wanted)]
    # Items were only removed or appended: every other line is kept.
    staying = [line if at not in number or number[at] in wanted else "" for at, line in enumerate(lines)]
    indent = lines[next(iter(number))].partition("-")[0]
    staying[-1] += "".join(f"{indent}- {_scalar(each)}{newline}" for each in wanted[len(kept) :])
    return staying


def _as_written(node: Node) -> str:
    return " ".join((node.text if isinstance(node, Scalar) and node.text else str(plain(node))).split())


def _require_only(
    before: FrontMatter, problems: int, text: str, after: str, values: MappingOf[str, Value], file: str
) -> None:
    """Check the result: the document must declare the new values, and nothing else may have changed."""
    cleaned = clean(after)
    found, wrong = front_matter.parse(cleaned, file)
    kept = {
        "body_start": 0,
        "body_line": 0,
        "links": {},
        "fields": (),
        **{name: getattr(found, name) for name in values},
    }
    same = replace(before, **kept) == replace(found, **kept) and before.links.keys() == found.links.keys()
    said = all(_declared_value(found, name) == _value_to_write(name, value) for name, value in values.items())
    whole = cleaned[found.body_start :] == clean(text)[before.body_start :]
    if not (same and said and whole) or len(wrong) > problems:
        raise SpeckitError("E101", f"{file}: its front matter cannot be changed without changing something else")


def _declared_value(found: FrontMatter, name: str) -> object:
    value = getattr(found, name)
    return str(value) if name == "tier" else value


def _value_to_write(name: str, value: Value) -> object:
    if name == "created_at":
        return front_matter.epoch_seconds(str(value))
    if isinstance(value, tuple):
        return tuple(dict.fromkeys(" ".join(each.split()) for each in value))
    return " ".join(value.split()) if isinstance(value, str) else float(value)


def scalar_or_list(value: Value) -> str:
    """A value as YAML on one line; runs of white space become single blanks."""
    return f"[{', '.join(map(_scalar, value))}]" if isinstance(value, tuple) else _scalar(value)


def _scalar(value: str | float) -> str:
    """A value as YAML: plain words unquoted, anything else in quotes."""
    if not isinstance(value, str):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return exact(" ".join(value.split()))


def exact(text: str) -> str:
    """A text as YAML on one line, with its white space: plain words unquoted."""
    return text if _PLAIN.match(text) and text not in _CONSTANTS else quote_scalar(text)


def quote_scalar(text: str) -> str:
    """Any text as a quoted YAML scalar on one line."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def trigger_phrases(phrases: SequenceOf[str]) -> tuple[str, ...]:
    """Normalised trigger phrases. Raises E030 for one that is empty or too long, E032 for too many."""
    given = tuple(dict.fromkeys(" ".join(clean(phrase).split()) for phrase in phrases))
    for phrase in given:
        if not phrase:
            raise SpeckitError("E030", "a trigger phrase is empty")
        if len(phrase) > front_matter.LONGEST_TRIGGER:
            message = (
                f"a trigger phrase has {len(phrase)} characters; at most {front_matter.LONGEST_TRIGGER} are allowed"
            )
            raise SpeckitError("E030", message)
    if len(given) > MOST_TRIGGERS:
        raise SpeckitError("E032", f"{len(given)} trigger phrases were given; at most {MOST_TRIGGERS} are allowed")
    return given
