"""The addresses of a store and its replicas in `.speckit/config.yaml`, for those who need nothing else of the file."""

from __future__ import annotations

import re

from speckit_memory.config.workspace.options import WorkspaceConfig
from speckit_memory.config.workspace.store_address import is_address, require_address
from speckit_memory.config.yaml.binding import bind
from speckit_memory.config.yaml.reader import Node, YamlMapping, plain, read, without
from speckit_memory.errors import Problem, SpeckitError

ACTIONS = ("correct the value at the position shown", "see docs/workspace.md")


def configured_store(text: str, file: str) -> str:
    """The address in the text of a file, "" without one. Raises the problem with it, and ignores all others."""
    if not re.search(r"^[^#\n]*\bstore\b", text, re.MULTILINE):
        return ""
    node, _ = read(text, file)
    node, problems = without_password(node, file)
    entry = node.get("store") if isinstance(node, YamlMapping) else None
    if entry is not None:
        config, misshapen = bind(WorkspaceConfig, YamlMapping((entry,), entry.where), "the file", ACTIONS)
        problems = [*problems, *misshapen]
        if not problems:
            return config.store
    if problems:
        raise SpeckitError.of(problems)
    return ""


def without_password(node: Node | None, file: str) -> tuple[Node | None, list[Problem]]:
    """The file without addresses that must not be shown, and the problems with them, which have no place: at a place
    the line would be shown, password and all."""
    problems: list[Problem] = []
    for key in ("store", "read_from"):
        entry = node.get(key) if isinstance(node, YamlMapping) else None
        given = plain(entry.value) if entry else None
        for address in given if isinstance(given, list) else [given]:
            if node is None or not isinstance(address, str) or not is_address(address):
                continue
            try:
                require_address(address, file)
            except SpeckitError as error:
                node = without(node, (key,))
                problems += error.problems
                break
    return node, problems
