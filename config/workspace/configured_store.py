"""The address of a store under `store` in `.speckit/config.yaml`, for those who need nothing else of the file."""

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
    """The file without a `store` that must not be shown, and the problem with it, which has no place: at a place the
    line would be shown, password and all."""
    entry = node.get("store") if isinstance(node, YamlMapping) else None
    address = plain(entry.value) if entry else None
    if node is not None and isinstance(address, str) and is_address(address):
        try:
            require_address(address, file)
        except SpeckitError as error:
            return without(node, ("store",)), list(error.problems)
    return node, []
