"""Reads the declarations of feature flags: in the package, in extensions, and in `.speckit/flags.yaml`.

The entries read here are combined by `config.flags.flags`.
"""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from speckit_memory.config.flags.flag import PREFIX
from speckit_memory.config.workspace.settings import FLAGS_FILE
from speckit_memory.config.workspace.workspace_text import workspace_text
from speckit_memory.config.yaml.reader import MappingEntry, Node, Scalar, YamlMapping, read
from speckit_memory.errors import Problem, Where, nearest

SHIPPED_FILE = "config/flags.yaml"
"""The name in positions of the package's file."""


@dataclass(frozen=True, slots=True)
class FlagFile:
    """The entries of one file, and whether it belongs to a workspace.

    Declarations in the code of an `extension` count as a file, with the code as position; "" for all others.
    """

    file: str
    entries: tuple[MappingEntry, ...]
    of_workspace: bool = False
    extension: str = ""


def said_in_code(name: str, facts: abc.Mapping[str, str], where: Where) -> MappingEntry:
    """The entry for a flag that an extension declares in code."""
    said = tuple(MappingEntry(key, where, Scalar(value, where)) for key, value in facts.items())
    return MappingEntry(name, where, YamlMapping(said, where))


def shipped_flags() -> tuple[FlagFile, list[Problem]]:
    """The package's file, and all problems with its form."""
    text = resources.files("speckit_memory.config").joinpath("flags.yaml").read_text(encoding="utf-8")
    return _flag_file(text, SHIPPED_FILE, of_workspace=False)


def workspace_flags(root: Path) -> tuple[FlagFile, list[Problem]]:
    """The file of a workspace, empty if there is none, and all problems with its form."""
    file = root / FLAGS_FILE
    text, unread = workspace_text(file)
    if text is None:
        return FlagFile(str(file), (), of_workspace=True), unread
    return _flag_file(text, str(file), of_workspace=True)


def _flag_file(text: str, file: str, *, of_workspace: bool) -> tuple[FlagFile, list[Problem]]:
    """The entries of a file, and all problems with its form."""
    nothing = FlagFile(file, (), of_workspace)
    node, problems = _read(text, file)
    if node is None or _empty(node):
        return nothing, problems
    if not isinstance(node, YamlMapping):
        return nothing, [*problems, _form(node.where, "the file must be a mapping with the key 'flags'")]
    for other in (entry for entry in node.entries if entry.key != "flags"):
        message = f"the file has no key '{other.key}'; {nearest(other.key, ('flags',))}"
        if isinstance(other.value, YamlMapping) and other.key.startswith(PREFIX):
            message = f"'{other.key}' is a flag; write it, indented, below a line 'flags:'"
        problems.append(Problem("E115", message, where=other.where))
    entry = node.get("flags")
    if entry is None or _empty(entry.value):
        return nothing, problems
    if not isinstance(entry.value, YamlMapping):
        return nothing, [*problems, _form(entry.value.where, "'flags' must be a mapping of names to flags")]
    return FlagFile(file, entry.value.entries, of_workspace), problems


def _read(text: str, file: str) -> tuple[Node | None, list[Problem]]:
    """Parse a text. The state `off` needs no quotes, since it is unambiguous here."""
    node, problems = read(text, file)
    entry = node.get("flags") if isinstance(node, YamlMapping) else None
    flags = [one.value for one in entry.value.entries] if entry and isinstance(entry.value, YamlMapping) else []
    states = {
        said.value.where
        for flag in flags
        if isinstance(flag, YamlMapping)
        for said in flag.entries
        if said.key in ("state", "was") and isinstance(said.value, Scalar) and said.value.value == "off"
    }
    return node, [problem for problem in problems if problem.code != "E113" or problem.where not in states]


def _empty(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None


def _form(where: Where, message: str) -> Problem:
    hint = "For example: flags: {SPECKIT_NOVELTY_BOOST: {state: enabled}}"
    return Problem("E114", message, hint, ("see docs/workspace.md",), where)
