"""Changes the decision on one flag in a workspace's flags file, preserving comments and layout."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from speckit_memory.config.files.file_lock import locked
from speckit_memory.config.files.regular_file import LARGEST_CONFIGURATION, read_as_written, workspace_text
from speckit_memory.config.files.written_file import written
from speckit_memory.config.workspace.settings import FLAGS_FILE
from speckit_memory.config.yaml.editor import NotInPlaceError, YamlEditor, flow_style
from speckit_memory.config.yaml.reader import Node, YamlMapping, plain, read
from speckit_memory.errors import SpeckitError

Decision = Mapping[str, str]
"""The keys to set for a flag: its state, the state before, the date, and the evidence."""

_MARK = "\ufeff"
"""The byte order mark that some editors write at the start of a file."""


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
        editor = YamlEditor(text)
        try:
            editor.merge_root(node, {"flags": {name: dict(decision)}})
            if known and isinstance(known.value, YamlMapping):
                editor.remove(known.value, set(over) - set(decision))
            changed = editor.result()
        except NotInPlaceError:
            changed = ""
        # Layouts differ: the result must parse to exactly the intended content.
        if _says(changed, _expected_content(node, name, wanted), file):
            return mark + changed
    hint = f"Write it by hand: {name}: {flow_style(wanted)}"
    raise SpeckitError("E014", f"'{name}' cannot be changed in place in {file}", hint=hint, actions=("edit the file",))


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
