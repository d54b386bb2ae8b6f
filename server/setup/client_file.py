"""A client's file with the entry of this server in it: what else the file says stays as it is."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speckit_memory.config.files.regular_file import as_written
from speckit_memory.config.workspace.settings import ROOT_VARIABLE
from speckit_memory.server.setup.clients import NAME, Client, Entry

_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)


class ByHandError(Exception):
    """The file cannot be changed without losing something of it; the text says why."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a file holds and what it shall hold. Both are the same where the entry is there already."""

    file: Path
    before: str | None
    after: str


def configuration(client: Client, entry: Entry, name: str = NAME) -> str:
    """The entry as people paste it into the client's file."""
    if client.form == "toml":
        return _toml(client, entry, name)
    return json.dumps({client.keys: {name: client.entry(entry)}}, indent=2, ensure_ascii=False) + "\n"


def change(client: Client, entry: Entry, root: Path) -> Change:
    """The client's file with the entry in it.

    An entry of the same workspace is brought up to date; one of another workspace keeps its name, and the new one is
    called after its folder. Raises ByHandError where the file is a link, is no regular file, holds comments or is not
    what the client would read.
    """
    file = client.file(root)
    if file.is_symlink() or file.parent.is_symlink():
        raise ByHandError("it is a link, or lies behind one")
    try:
        before = as_written(file)
    except FileNotFoundError:
        return Change(file, None, configuration(client, entry))
    except (OSError, UnicodeDecodeError) as error:
        raise ByHandError(f"it cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from error
    if not before.strip():
        return Change(file, before, configuration(client, entry))
    after = _in_toml(before, client, entry) if client.form == "toml" else _in_json(before, client, entry)
    return Change(file, before, with_ends_of(before, after))


def with_ends_of(before: str, after: str) -> str:
    """The text with the ends of lines that another one has."""
    plain = after.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if "\r\n" in before else plain


def _in_json(before: str, client: Client, entry: Entry) -> str:
    try:
        document = json.loads(before.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise ByHandError("it is not plain JSON; comments in it would be lost") from error
    servers = document.get(client.keys, {}) if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise ByHandError(f"its '{client.keys}' is not an object")
    name, wanted = _wanted(servers, client, entry)
    if servers.get(name) == wanted:
        return before
    document[client.keys] = {**servers, name: wanted}
    indent = _INDENT.search(before)
    return json.dumps(document, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"


def _in_toml(before: str, client: Client, entry: Entry) -> str:
    try:
        document = tomllib.loads(before.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise ByHandError(f"it is not TOML: {error}") from error
    servers = document.get(client.keys, {})
    if not isinstance(servers, dict):
        raise ByHandError(f"its '{client.keys}' is not a table")
    name, wanted = _wanted(servers, client, entry)
    if servers.get(name) == wanted:
        return before
    if name in servers:
        raise ByHandError(f"its table '{client.keys}.{name}' says something else")
    after = f"{before.rstrip()}\n\n{_toml(client, entry, name)}"
    try:
        tomllib.loads(after.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        # an inline table, `mcp_servers = {...}`, cannot be added to
        raise ByHandError(f"its '{client.keys}' cannot be added to at the end of the file") from error
    return after


def _wanted(servers: dict[str, Any], client: Client, entry: Entry) -> tuple[str, Entry]:
    """The name of the entry among others, and what it should say."""
    own, root = client.entry(entry), entry["env"][ROOT_VARIABLE]
    # an entry may name this workspace by its path, as the client's file does, or not at all
    roots = (root, own.get("env", {}).get(ROOT_VARIABLE), None)
    name = _free(servers, root, roots)
    return name, _brought_up(servers.get(name), own, roots)


def _free(servers: dict[str, Any], root: str, roots: tuple[str | None, ...]) -> str:
    """The name of the entry: the usual one, unless another workspace has it."""
    folder = re.sub(r"[^a-z0-9]+", "-", Path(root).name.lower()).strip("-") or "workspace"
    names = [NAME, f"{NAME}-{folder}", *(f"{NAME}-{folder}-{number}" for number in range(2, len(servers) + 3))]
    return next(name for name in names if name not in servers or _root(servers[name]) in roots)


def _brought_up(there: Any, entry: Entry, roots: tuple[str | None, ...]) -> Entry:
    """The entry, with what people have said in it of other things than where this workspace is."""
    if not isinstance(there, dict):
        return entry
    said = env if isinstance(env := there.get("env"), dict) else {}
    kept = {name: value for name, value in said.items() if name != ROOT_VARIABLE or value not in roots}
    env = {**kept, **entry.get("env", {})}
    both = {**there, **entry, "env": env}
    return both if env else {name: value for name, value in both.items() if name != "env"}


def _root(entry: Any) -> Any:
    env = entry.get("env") if isinstance(entry, dict) else None
    return env.get(ROOT_VARIABLE) if isinstance(env, dict) else None


def _toml(client: Client, entry: Entry, name: str) -> str:
    """A table; a basic string of TOML has the escapes of one of JSON, for text without lone surrogates."""
    told = client.entry(entry)
    plain = [f"{key} = {_value(value)}" for key, value in told.items() if not isinstance(value, dict)]
    tables = [
        f"{key} = {{ {', '.join(f'{inner} = {_value(one)}' for inner, one in value.items())} }}"
        for key, value in told.items()
        if isinstance(value, dict)
    ]
    return "\n".join([f"[{client.keys}.{name}]", *plain, *tables]) + "\n"


def _value(value: Any) -> str:
    # DEL is a control character, which TOML wants escaped and JSON does not
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
