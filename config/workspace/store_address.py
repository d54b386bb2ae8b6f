"""Addresses of stores in PostgreSQL, and the store links that represent them in a workspace.

A *store link* is a small file with the address of a store. What lies next to a store file, such as segments, lies next
to the link; the evaluation database is in the same database as the store.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from speckit_memory.config.files.paths import is_folder
from speckit_memory.config.files.regular_file import open_regular
from speckit_memory.errors import SpeckitError

SCHEMES = ("postgresql://", "postgres://")
ADDRESS = "postgresql://USER@HOST/DATABASE?workspace=NAME"
LINKS = "postgres"
"""The folder in `.speckit` with a folder for each store in PostgreSQL."""
LINK = "memory.store"
LONGEST = 500
"""Maximum size of a store link in bytes. A store file is larger, since SQLite's smallest page has 512 bytes; opening
and closing it here would release the locks of this process's connections to it."""
PRINCIPAL = "principal"
"""The parameter of the address in a store link that names the principal: see `settings.PRINCIPAL_VARIABLE`."""
_SECRETS = {"password", "sslpassword"}
_VARIABLES = {
    **{"PGHOST": "host", "PGHOSTADDR": "hostaddr", "PGPORT": "port", "PGDATABASE": "dbname", "PGUSER": "user"},
    "PGSERVICE": "service",
}
"""Variables of libpq for what an address leaves out."""
_TIMEOUTS = {"connect_timeout": 5, "keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3}
"""In seconds, unless the address says otherwise: a network that is gone is noticed within half a minute."""


class StoreAddress(NamedTuple):
    """The parts of an address: that of the database as the driver takes it, and this product's own parameters, each
    "" if it is missing."""

    url: str
    workspace: str
    principal: str
    partitions: str


class Replicas(NamedTuple):
    """Addresses of replicas of a store in PostgreSQL, and how many seconds behind it they may be to be read from."""

    addresses: tuple[str, ...] = ()
    lag_seconds: float = 0.0


NO_REPLICAS = Replicas()


def is_address(text: str) -> bool:
    """Whether a text names a store in PostgreSQL."""
    return text.startswith(SCHEMES)


def require_address(text: str, origin: str) -> str:
    """Returns an address that may be written down.

    Raises E057 for an address with a password, which is not repeated, and E030 for one that is no URL.
    """
    try:
        parts = urlsplit(text)
        secret = parts.password is not None or any(name in _SECRETS for name, _ in parse_qsl(parts.query))
        number = parts.port
    except ValueError:
        secret, number = "@" in text, -1
    if secret:
        raise SpeckitError("E057", f"the address of the store, given by {origin}, holds a password")
    if number == -1 or not is_address(text) or "\n" in text or len(text.encode()) >= LONGEST:
        raise SpeckitError("E030", f"{origin}: this is no address of a store; accepted: {ADDRESS}")
    return text


def split_address(address: str) -> StoreAddress:
    """The parts of an address."""
    # not `urlunsplit`, which writes postgresql:///?service=NAME with one slash
    place, _, query = address.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    own = [options.pop(name, "") for name in ("workspace", PRINCIPAL, "partitions")]
    for name, seconds in _TIMEOUTS.items():
        options.setdefault(name, str(seconds))
    return StoreAddress(f"{place}?{urlencode(options, quote_via=quote)}", *own)


def address_at(path: Path) -> str:
    """The address in the store link at a path, "" if there is no store link. Raises E057 for one with a password."""
    try:
        found = path.stat()
        if not S_ISREG(found.st_mode) or not 0 < found.st_size <= LONGEST:
            return ""
        with os.fdopen(open_regular(path), encoding="utf-8") as file:
            text = file.read(LONGEST).strip()
    except (OSError, UnicodeDecodeError, ValueError):
        return ""
    return require_address(text, str(path)) if is_address(text) else ""


def principal_at(path: Path) -> str:
    """The principal of the store link at a path, "" if it names none or there is no store link. Raises E057."""
    return split_address(address_at(path)).principal


def store_label(path: Path) -> str:
    """The store at a path, for messages: the address in a store link, or the path."""
    return address_at(path) or str(path)


def store_link(address: str, folder: Path, origin: str, principal: str = "") -> Path:
    """The path of the store link for an address and a principal, which is written if it is missing.

    What lies next to the link is made from what the principal may see, so each principal has a separate link.

    An address that libpq's variables lead to another store has another folder.

    Args:
        address: The address.
        folder: The product's folder in the workspace, which is made unless the workspace itself is missing.
        origin: What gives the address, for messages.
        principal: The principal, "" for none.

    Raises:
        SpeckitError: E057 or E030 for the address, E020 if the link cannot be written.
    """
    require_address(address, origin)
    if split_address(address).principal:
        raise SpeckitError(
            "E030",
            f"{origin}: the address of the store names a principal; accepted: {ADDRESS}",
            actions=("set SPECKIT_PRINCIPAL instead",),
        )
    if principal:
        address += f"{'&' if '?' in address else '?'}{PRINCIPAL}={quote(principal)}"
    links = folder / LINKS
    digest = hashlib.sha256("\n".join([address, *_variables(address)]).encode())
    path = links / digest.hexdigest()[:16] / LINK
    try:
        if is_folder(folder.parent) and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            # the folder may be in a repository without the list of ignored files that a store file brings
            (links / ".gitignore").write_text("*\n", encoding="utf-8")
            path.write_text(address + "\n", encoding="utf-8")
    except OSError as error:
        raise SpeckitError(
            "E020",
            f"{path} could not be written: {error.strerror}",
            hint="A workspace keeps the address of its store, and files made from the store, in its folder.",
            actions=("make the workspace's folder .speckit writable",),
        ) from error
    return path


def _variables(address: str) -> list[str]:
    """The settings of libpq's variables that complete an address."""
    parts = urlsplit(address)
    given = {name for name, _ in parse_qsl(parts.query)}
    in_front = {"host": parts.hostname, "port": parts.port, "dbname": parts.path.strip("/"), "user": parts.username}
    given.update(name for name, found in in_front.items() if found)
    used = [name for name, option in _VARIABLES.items() if option not in given and os.environ.get(name)]
    if os.environ.get("PGSERVICEFILE") and ("service" in given or "PGSERVICE" in used):
        used.append("PGSERVICEFILE")
    return [f"{name}={os.environ[name]}" for name in used]
