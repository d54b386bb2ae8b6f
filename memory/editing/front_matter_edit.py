"""Changes values of front matter in place: every other character of the document is kept (feature T8)."""

from __future__ import annotations

import re
from collections.abc import Collection
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from typing import NamedTuple

from speckit_memory.config.yaml.editor import YamlEditor, quote_scalar
from speckit_memory.config.yaml.reader import AMBIGUOUS, MappingEntry, Node, Scalar, Sequence, YamlMapping, plain
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
_CONSTANTS = AMBIGUOUS | {"true", "True", "TRUE", "false", "False", "FALSE", "null", "Null", "NULL"}


class EditedBlock(NamedTuple):
    """The front matter at the head of a document.

    `text` is between its delimiters, `head` the document up to there and `tail` the rest. `first_line` is the number of
    its first line. `node` holds the values, None without any, and `lost` are the lines that cannot be read.
    """

    form: str
    head: str
    text: str
    tail: str
    first_line: int
    node: YamlMapping | None
    lost: tuple[int, ...]

    def entry(self, keys: Collection[str]) -> MappingEntry | None:
        """The first entry with one of these keys."""
        return next((entry for entry in self.node.entries if entry.key in keys), None) if self.node else None

    def editor(self) -> YamlEditor:
        """An editor of the text."""
        return YamlEditor(self.text, self.first_line, self.newline)

    def with_text(self, text: str) -> str:
        """The document with another text of its front matter."""
        return f"{self.head}{text}{self.tail}"

    def removed(self) -> str:
        """The document without its front matter and the delimiters."""
        head, tail = ([line for line in _LINE.findall(part) if line] for part in (self.head, self.tail))
        return "".join((*head[:-1], *tail[1:]))

    @property
    def newline(self) -> str:
        """The line end of the document."""
        return line_end(self.head)


def edit_front_matter(text: str, values: MappingOf[str, Value], file: str) -> str:
    """The text of a document with changed front matter.

    Everything else is kept, with comments and line endings; front matter is added if there is none. When a list is
    reordered, the comments behind its items are lost.

    Args:
        text: The document.
        values: New values by the names of `KEYS`.
        file: Name of the document, for messages.

    Raises:
        SpeckitError: E101 if something else would have to change, as in broken or one-line front matter.
    """
    before, problems = front_matter.parse(clean(text), file)
    if unread := front_matter.unread(clean(text), before, problems):
        raise unreadable(file, unread)
    block = block_of(text, file) if before.body_start else None
    if block is None:
        newline = line_end(text)
        said = "".join(f"{KEYS[name][0]}: {scalar_or_list(value)}{newline}" for name, value in values.items())
        after = f"---{newline}{said}---{newline}{text}"
    elif block.form == "toml":
        after = block.with_text(_edited_toml(block, values))
    else:
        editor = block.editor()
        for name, value in values.items():
            entry = block.entry(KEYS[name])
            if entry is None:
                # New keys go before the closing delimiter.
                editor.add_at_end(f"{KEYS[name][0]}: {scalar_or_list(value)}\n")
            elif not (isinstance(entry.value, Sequence) and value and _edit_items(editor, entry.value, value)):
                editor.replace(entry, scalar_or_list(value))
        after = block.with_text(editor.result())
    # Layouts differ: parse the result to be sure that nothing else has changed.
    _require_only(before, len(problems), text, after, values, file)
    return after


def unreadable(file: str, problem: Problem) -> SpeckitError:
    """The error for unreadable front matter: it is not changed, and no second block is put before it."""
    message = f"{file}: its front matter cannot be read, and no second block is put before it: {problem.message}"
    return SpeckitError("E101", message, actions=("correct the front matter",))


def line_end(text: str) -> str:
    """The line end of a text: that of its first line."""
    return "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"


def _edited_toml(block: EditedBlock, values: MappingOf[str, Value]) -> str:
    """The text with values on separate lines, before any table."""
    lines, new = [line for line in _LINE.findall(block.text) if line], []
    places = front_matter_block.toml_key_lines("".join(line.rstrip("\r\n") + "\n" for line in lines))
    for name, value in values.items():
        key = next((each for each in KEYS[name] if each in places), KEYS[name][0])
        if isinstance(value, tuple):
            said = f"[{', '.join(map(quote_scalar, value))}]"
        else:
            said = quote_scalar(" ".join(value.split())) if isinstance(value, str) else repr(value)
        line = f"{key} = {said}{block.newline}"
        if key in places:
            lines[places[key]] = line
        else:
            new.append(line)
    return "".join((*new, *lines))


def block_of(text: str, file: str) -> EditedBlock | None:
    """The front matter at the beginning of a text. Raises E101 if it cannot be edited."""
    cleaned = clean(text)
    found = front_matter_block.find_block(cleaned)
    if found is None:
        return None
    declared = front_matter_block.read_block(cleaned, found, file)
    node = declared.node if isinstance(declared.node, YamlMapping) else None
    if node and (node.flow or any(entry.where.column != 1 for entry in node.entries)):
        raise SpeckitError("E101", f"{file}: its front matter is on one line or indented")
    # The places are those of the cleaned text, whose lines are the same.
    starts = [each.start() for each in _LINE.finditer(text)]
    start, end = (starts[cleaned.count("\n", 0, place)] for place in (found.start, found.end))
    return EditedBlock(found.form, text[:start], text[start:end], text[end:], found.first_line, node, declared.lost)


def _edit_items(editor: YamlEditor, items: Sequence, value: Value) -> bool:
    """Make a list with each item on its own line hold the wanted ones; False for any other list.

    Unchanged items stay, new ones follow. If the order changes, all lines of items are new.
    """
    if not isinstance(value, tuple):
        return False
    written = [_as_written(item) for item in items.items]
    kept = [each for each in written if each in value]
    if kept != list(value[: len(kept)]):
        kept = []
    staying = [place for place, each in enumerate(written) if each in kept]
    return editor.list_items(items, staying, [_scalar(each) for each in value[len(kept) :]])


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
