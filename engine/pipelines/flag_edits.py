"""Changes the decision on one flag in a workspace's flags file, preserving comments and layout."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from speckit_memory.config.files.file_lock import locked
from speckit_memory.config.files.regular_file import LARGEST_CONFIGURATION, read_as_written
from speckit_memory.config.files.written_file import written
from speckit_memory.config.workspace.settings import FLAGS_FILE
from speckit_memory.config.workspace.workspace_text import workspace_text
from speckit_memory.config.yaml.reader import MappingEntry, Node, Scalar, YamlMapping, plain, read
from speckit_memory.engine.pipelines.rewriting import Edit, PositionedText
from speckit_memory.engine.pipelines.yaml_flow import flow_style
from speckit_memory.errors import SpeckitError

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


Decision = Mapping[str, str]
"""The keys to set for a flag: its state, the state before, the date, and the evidence."""

_MARK = "\ufeff"
"""The byte order mark that some editors write at the start of a file."""
_LINE_END = re.compile("\r\n|\n|\r")


def decide(
    root: Path,
    name: str,
    decision: Decision,
    over: Collection[str] = (),
    check: Callable[[], None] = lambda: None,
) -> Path:
    """Writes a decision to the flags file of a workspace and returns the file, which is created if missing.

    The write is atomic, and a lock serialises processes.

    Args:
        root: The workspace.
        name: The flag.
        decision: The keys to set.
        over: Keys to remove because they no longer hold.
        check: Called under the lock; raises if the evidence for the decision no longer holds.

    Raises:
        SpeckitError: The file cannot be read, changed in place or written.
    """
    file = root / FLAGS_FILE
    real = file.resolve()  # read and write the target of a link, not the link
    try:
        file.parent.mkdir(exist_ok=True)
        with locked(real):
            check()
            text, unread = workspace_text(file, read_as_written)
            if unread:
                raise SpeckitError.of(unread)
            changed = write_decision(text or "", name, decision, str(file), over)
            with written(real) as stream:
                stream.write(changed)
    except TimeoutError as error:
        message = f"'{file}' is locked by another process, which does not finish"
        raise SpeckitError("E014", message, actions=("end that process and try again",)) from error
    except OSError as error:
        message = f"'{file}' cannot be written: {(error.strerror or str(error)).lower()}"
        raise SpeckitError("E014", message, actions=("make the file and its folder writable",)) from error
    return file


def write_decision(text: str, name: str, decision: Decision, file: str, over: Collection[str] = ()) -> str:
    """The text of a flags file with a decision on one flag.

    The result is parsed again to prove that it differs from the input in the decision alone.

    Args:
        text: The flags file.
        name: The flag.
        decision: The keys to set.
        file: The file's name, for messages.
        over: Keys to remove because they no longer hold.

    Raises:
        SpeckitError: The text cannot be changed in place; the hint says what to write by hand.
    """
    mark, text = (_MARK, text[1:]) if text.startswith(_MARK) else ("", text)
    node, problems = read(text, file)
    if any(problem.code != "E113" for problem in problems):
        raise SpeckitError.of(problems)
    flags = node.get("flags") if isinstance(node, YamlMapping) else None
    known = flags.value.get(name) if flags and isinstance(flags.value, YamlMapping) else None
    said = plain(known.value) if known else None
    kept = {key: value for key, value in said.items() if key not in over} if isinstance(said, dict) else {}
    wanted = {**kept, **decision}
    if said is None or isinstance(said, dict):  # any other value is a user's mistake and must not be overwritten
        end = found.group() if (found := _LINE_END.search(text)) else "\n"
        meant = _expected_content(node, name, wanted)
        # layouts differ: take the first way whose result parses to exactly the intended content
        for edits in _ways(text, node, flags, name, decision, over):
            changed = PositionedText(text).edited([(start, stop, new.replace("\n", end)) for start, stop, new in edits])
            if _says(changed, meant, file):
                return mark + changed
    hint = f"Write it by hand: {name}: {flow_style(wanted)}"
    raise SpeckitError("E014", f"'{name}' cannot be changed in place in {file}", hint=hint, actions=("edit the file",))


def _ways(
    text: str, node: Node | None, flags: MappingEntry | None, name: str, decision: Decision, over: Collection[str]
) -> Iterator[Sequence[Edit]]:
    """Edits that may add the decision to the text, the best first."""
    if flags is None or (isinstance(flags.value, Scalar) and flags.value.value is None):
        yield from first_flag(text, node, flags, f"{name}: {flow_style(dict(decision))}")
    elif isinstance(flags.value, YamlMapping):
        page, known = PositionedText(text), flags.value.get(name)
        if known is None:
            yield page.with_values(flags.value, flags.where, {name: dict(decision)}) or ()
        elif isinstance(known.value, YamlMapping):
            edits = page.with_values(known.value, known.where, decision)
            if edits is not None:
                yield [*edits, *page.without(known.value, set(over) - set(decision))]


def _expected_content(node: Node | None, name: str, entry: Mapping[str, object]) -> object:
    """The parsed content that the text must have after the decision."""
    said = plain(node) if node else None
    whole = said if isinstance(said, dict) else {}
    return {**whole, "flags": {**(whole.get("flags") or {}), name: dict(entry)}}


def _says(text: str, meant: object, file: str) -> bool:
    """Whether the text parses to exactly this content."""
    node, problems = read(text, file)
    small = len(text.encode()) < LARGEST_CONFIGURATION
    return small and node is not None and all(one.code == "E113" for one in problems) and plain(node) == meant
