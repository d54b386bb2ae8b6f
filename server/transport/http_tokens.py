"""Static bearer tokens, read from a file: one for all clients, or one for each principal."""

from __future__ import annotations

import hmac
import os
import stat
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from mcp.server.auth.provider import AccessToken

from speckit_memory.config.files.regular_file import read_text
from speckit_memory.config.workspace.settings import PRINCIPAL_NAME, PRINCIPAL_RULE
from speckit_memory.errors import Problem, SpeckitError, Where
from speckit_memory.errors.echo import plural

SCOPE = "memory"
"""The scope that every request needs; static tokens have it."""
MIN_TOKEN = 16
_LINES = f"A line has a principal and a token of at least {MIN_TOKEN} ASCII characters; a single token may stand alone."
_MAKE_ONE = ("make a token with `openssl rand -hex 32`",)
_OF_OTHERS = stat.S_IRWXO | stat.S_IWGRP


class StaticTokens:
    """Accepts the tokens of a file. Only their digests are kept, and they are compared in constant time."""

    def __init__(self, tokens: Iterable[tuple[str, str]]) -> None:
        """`tokens` are pairs of a principal and a token; the principal "" is that of the server."""
        self._tokens = [(_digest(token), principal) for principal, token in tokens]

    async def verify_token(self, token: str) -> AccessToken | None:
        """The caller's identity, None for a token that is not in the file."""
        given = _digest(token)
        # all are compared, so that the time does not depend on the place of a token in the file
        found = [principal for digest, principal in self._tokens if hmac.compare_digest(given, digest)]
        # the token itself is not carried on: nothing that shows or logs the identity can show it
        return access(found[0], "speckit-memory-client") if found else None


def access(principal: str, client: str, scopes: Iterable[str] = (SCOPE,)) -> AccessToken:
    """The identity of a caller.

    Args:
        principal: Whose memory the request reads and writes.
        client: The program that sent it.
        scopes: What it may do.
    """
    return AccessToken(token="", client_id=client, scopes=list(scopes), subject=principal)


def read_tokens(file: Path) -> StaticTokens:
    """Reads a token file. Raises E010, E011, E032 with every line that cannot be used, or E037."""
    try:
        text, mode = read_text(file), file.stat().st_mode
    except FileNotFoundError:
        raise SpeckitError("E010", f"the token file '{file}' does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpeckitError("E011", f"the token file '{file}' cannot be read: {error}") from None
    if os.name == "posix" and mode & _OF_OTHERS:
        found = f"other users can read or change the token file '{file}' (mode {stat.S_IMODE(mode):04o})"
        raise SpeckitError("E037", found, actions=(f"run `chmod 600 {file}`",))
    lines = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, words) for number, words in lines if words and not words[0].startswith("#")]
    problems, line_of = [], dict[str, int]()
    for number, words in lines:
        # neither word is shown: where they are swapped, the first one is the token
        if reason := _why_not(words, len(lines) == 1):
            problems.append(_unusable(reason, file, number))
        elif (first := line_of.setdefault(words[-1], number)) != number:
            problems.append(_unusable(f"the line has the token of line {first}", file, number))
    if problems or not lines:
        raise SpeckitError.of(problems or [_unusable("the token file has no token", file, 1)])
    return StaticTokens((words[0] if len(words) > 1 else "", words[-1]) for _, words in lines)


def _why_not(words: list[str], alone: bool) -> str:
    """Why a line cannot be used, "" if it can."""
    if len(words) != 2 and not (alone and len(words) == 1):
        return f"the line has {plural(len(words), 'word')} instead of a principal and a token"
    if len(words) == 2 and not PRINCIPAL_NAME.fullmatch(words[0]):
        return f"the line has a principal that is not accepted; accepted: {PRINCIPAL_RULE}"
    if len(words[-1]) < MIN_TOKEN or not words[-1].isascii():
        return "the token cannot be used"
    return ""


def _unusable(found: str, file: Path, line: int) -> Problem:
    return Problem("E032", found, _LINES, _MAKE_ONE, Where(str(file), line, 1))


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()
