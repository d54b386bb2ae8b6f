"""Adds the entry of this server to a client's file without changing the rest."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speckit_memory.config.files.regular_file import read_as_written
from speckit_memory.config.workspace.settings import ROOT_VARIABLE
from speckit_memory.server.setup.clients import NAME, AgentClient, Entry

_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)


class ByHandError(Exception):
    """The file cannot be changed without losing content; the message is the reason."""


@dataclass(frozen=True, slots=True)
class FileEdit:
    """The old and the new content of a file; both are equal if the entry exists already."""

    file: Path
    before: str | None
    after: str


def configuration(client: AgentClient, entry: Entry, name: str = NAME) -> str:
    """The entry as users paste it into the client's file."""
    if client.form == "toml":
        return _toml(client, entry, name)
    return json.dumps({client.keys: {name: client.entry(entry)}}, indent=2, ensure_ascii=False) + "\n"


def change(client: AgentClient, entry: Entry, root: Path) -> FileEdit:
    """Adds the entry to the client's file.

    An existing entry of the same workspace is updated. If another workspace has the usual name, the new entry is named
    after its folder. Raises ByHandError if the file is a link, not a regular file, contains comments or is invalid.
    """
    file = client.file(root)
    if file.is_symlink() or file.parent.is_symlink():
        raise ByHandError("it is a link, or its folder is one")
    try:
        before = read_as_written(file)
    except FileNotFoundError:
        return FileEdit(file, None, configuration(client, entry))
    except (OSError, UnicodeDecodeError) as error:
        raise ByHandError(f"it cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from error
    if not before.strip():
        return FileEdit(file, before, configuration(client, entry))
    after = _in_toml(before, client, entry) if client.form == "toml" else _in_json(before, client, entry)
    return FileEdit(file, before, with_ends_of(before, after))


def with_ends_of(before: str, after: str) -> str:
    """Converts the line ends of `after` to those of `before`."""
    plain = after.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if "\r\n" in before else plain


def _in_json(before: str, client: AgentClient, entry: Entry) -> str:
    try:
        document = json.loads(before.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise ByHandError("it is not plain JSON; comments in it would be lost") from error
    servers = document.get(client.keys, {}) if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise ByHandError(f"its '{client.keys}' is not an object")
    name, wanted = _entry_to_write(servers, client, entry)
    if servers.get(name) == wanted:
        return before
    document[client.keys] = {**servers, name: wanted}
    indent = _INDENT.search(before)
    return json.dumps(document, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"


def _in_toml(before: str, client: AgentClient, entry: Entry) -> str:
    try:
        document = tomllib.loads(before.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise ByHandError(f"it is not TOML: {error}") from error
    servers = document.get(client.keys, {})
    if not isinstance(servers, dict):
        raise ByHandError(f"its '{client.keys}' is not a table")
    name, wanted = _entry_to_write(servers, client, entry)
    if servers.get(name) == wanted:
        return before
    if name in servers:
        raise ByHandError(f"its table '{client.keys}.{name}' has other values")
    # append as text, which keeps comments; rewriting the parsed document would lose them
    after = f"{before.rstrip()}\n\n{_toml(client, entry, name)}"
    try:
        tomllib.loads(after.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        # an inline table, `mcp_servers = {...}`, cannot be added to
        raise ByHandError(f"its '{client.keys}' cannot be added to at the end of the file") from error
    return after


def _entry_to_write(servers: dict[str, Any], client: AgentClient, entry: Entry) -> tuple[str, Entry]:
    """The name and the content of the entry, given the existing ones."""
    own, root = client.entry(entry), entry["env"][ROOT_VARIABLE]
    # existing entries may refer to this workspace by path, by the client's variable, or not at all
    roots = (root, own.get("env", {}).get(ROOT_VARIABLE), None)
    name = _free(servers, root, roots)
    return name, _brought_up(servers.get(name), own, roots)


def _free(servers: dict[str, Any], root: str, roots: tuple[str | None, ...]) -> str:
    """The usual name of the entry, or one with the folder if another workspace has that."""
    folder = re.sub(r"[^a-z0-9]+", "-", Path(root).name.lower()).strip("-") or "workspace"
    names = [NAME, f"{NAME}-{folder}", *(f"{NAME}-{folder}-{number}" for number in range(2, len(servers) + 3))]
    return next(name for name in names if name not in servers or _root(servers[name]) in roots)


def _brought_up(there: Any, entry: Entry, roots: tuple[str | None, ...]) -> Entry:
    """The entry merged with the user's own settings in the existing one, except for the workspace's path."""
    if not isinstance(there, dict):
        return entry
    said = env if isinstance(env := there.get("env"), dict) else {}
    kept = {name: value for name, value in said.items() if name != ROOT_VARIABLE or value not in roots}
    env = {**kept, **entry.get("env", {})}
    # our values win, except for variables that users added
    both = {**there, **entry, "env": env}
    return both if env else {name: value for name, value in both.items() if name != "env"}


def _root(entry: Any) -> Any:
    env = entry.get("env") if isinstance(entry, dict) else None
    return env.get(ROOT_VARIABLE) if isinstance(env, dict) else None


def _toml(client: AgentClient, entry: Entry, name: str) -> str:
    """The entry as a TOML table. TOML basic strings have the escapes of JSON, for text without lone surrogates."""
    told = client.entry(entry)
    plain = [f"{key} = {_value(value)}" for key, value in told.items() if not isinstance(value, dict)]
    tables = [
        f"{key} = {{ {', '.join(f'{inner} = {_value(one)}' for inner, one in value.items())} }}"
        for key, value in told.items()
        if isinstance(value, dict)
    ]
    return "\n".join([f"[{client.keys}.{name}]", *plain, *tables]) + "\n"


def _value(value: Any) -> str:
    # TOML requires DEL to be escaped, JSON does not
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
