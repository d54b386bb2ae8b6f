"""Parses the workspaces of a server: the only folders that a client can choose from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path

from speckit_memory.config.files.paths import is_folder, named_path, resolve_path
from speckit_memory.config.workspace.settings import DB_VARIABLE
from speckit_memory.errors import Problem, SpeckitError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Valid names of workspaces; they appear unescaped in addresses."""
_NAMES = "A name has letters, digits, '.', '_' and '-', at most 64, and begins with a letter or digit."


def served_roots(given: Sequence[str], environ: Mapping[str, str], *, own_store: bool) -> dict[str, Path]:
    """Maps the names of `[NAME=]DIR` options to folders; the default name is that of the folder.

    `own_store` tells that --db is given. Raises SpeckitError with all problems: a missing folder, an invalid or
    duplicate name, a folder inside another one, or one store for several workspaces.
    """
    problems: list[Problem] = []
    found: dict[str, Path] = {}
    for written in given:
        named, equals, folder = written.partition("=")
        if not (equals and NAME.fullmatch(named)):
            named, folder = "", written  # the folder's name may contain "="
        try:
            root = resolve_path(named_path(folder, "--workspace"))
        except SpeckitError as error:
            problems += error.problems
            continue
        name = named or root.name
        if not is_folder(root):
            problems.append(Problem("E014", f"--workspace {written}: {root} is not a folder"))
        elif not NAME.fullmatch(name):
            problems.append(Problem("E030", f"'{name}' cannot name a workspace", _NAMES, (f"write NAME={folder}",)))
        elif name in found:
            message = f"two workspaces are called '{name}': {found[name]} and {root}"
            problems.append(Problem("E030", message, "Clients choose by the name.", (f"write NAME={folder}",)))
        else:
            found[name] = root
    problems += _inside_another(found)
    if len(given) > 1 and (own_store or environ.get(DB_VARIABLE)):
        message = f"several workspaces cannot share the store that {'--db' if own_store else DB_VARIABLE} names"
        problems.append(Problem("E030", message, "Each has its own, in its folder .speckit.", ("leave the store out",)))
    if problems:
        raise SpeckitError.of(problems)
    return found


def _inside_another(found: Mapping[str, Path]) -> list[Problem]:
    return [
        Problem(
            "E030",
            f"the workspace '{inner}' is inside '{outer}': {found[inner]}",
            "Clients of the outer workspace could read the documents of the inner one.",
            ("serve them with two servers", "name folders that do not contain one another"),
        )
        for inner, outer in permutations(found, 2)
        if found[inner].is_relative_to(found[outer])
    ]
